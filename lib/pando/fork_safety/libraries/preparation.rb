# frozen_string_literal: true

require "pando/errors"
require "pando/fork_safety/libraries/first_use"
require "pando/fork_safety/libraries/threads"
require "pando/fork_safety/status"

module Pando
  module ForkSafety
    module Libraries
      # A library could not be made ready for a fork.
      class Unsafe < Error; end

      # A library cannot be made ready for a fork now, and has said what stands in the way (ForkSafety.obstruct).
      class Obstructed < Unsafe; end

      # One fork, and what the loaded libraries need around it. In the process that forks, and in its child.
      #
      # @api private
      class Preparation
        # @param libraries [Array<Library>] in the order in which they are made ready
        # @param on_failure [Proc, nil] is told of what went wrong and was lived with: library's name, error
        # @param prepared [Array<String>] names of libraries that the user's hooks take care of
        def initialize(libraries, on_failure = nil, prepared: [])
          @libraries = libraries
          @on_failure = on_failure
          @prepared = prepared
          @ready = []
        end

        # @param strict [Boolean] @param defer [Proc, nil] takes what is left to be called in the child
        # @return what the block returned
        # @raise [Unsafe]
        def around(strict, defer = nil)
          forker = Process.pid
          begin
            @libraries.each { |library| refuse_threads(library, strict) if library.unsafe_threads? }
            @libraries.each { |library| refuse_use(library) || refuse_late_comer(library) } if strict
            @libraries.each { |library| prepare(library, strict) if library.handled? }
            yield
          ensure
            Process.pid == forker ? recover(:in_parent) : be_born(defer)
          end
        end

        private

        def prepare(library, strict)
          library.step(:before_fork)&.call
          @ready << library
        rescue StandardError => e
          fail_for(library, e, strict)
        end

        def be_born(defer)
          defer ? defer.call(-> { recover(:in_child) }) : recover(:in_child)
        end

        # Nothing that goes wrong now would be mended by not forking.
        def recover(step)
          @ready.reverse_each do |library|
            library.step(step)&.call
          rescue StandardError => e
            @on_failure&.call(library.name, e)
          end
        end

        # A native thread does not exist in a child, but what it held and what waits for it does.
        def refuse_threads(library, strict)
          count = Threads.names.count { |name| library.thread?(name) }
          return unless count.positive?

          fail_for(library, Unsafe.new("#{count} of its native threads are alive, and a child has none of them"), strict)
        end

        def refuse_use(library)
          rule = library.rule
          return if rule.nil? || @prepared.include?(library.name) || !rule.refuses?

          fail_for(library, Unsafe.new("#{rule.note} #{rule.advice}"), true)
        end

        # Its first use was to be noticed, and it was not there yet when that was arranged.
        def refuse_late_comer(library)
          return if library.marks.all? { |mark| FirstUse.watched?(mark) }

          fail_for(library, Unsafe.new("it was loaded late and may have been used"), true)
        end

        def fail_for(library, error, strict)
          return @on_failure&.call(library.name, error) unless strict

          reason = "#{library.name}: #{error.message.lines.first&.chomp}"
          ForkSafety.give_up(reason) unless error.is_a?(Obstructed)
          raise Unsafe, reason
        end
      end
    end
  end
end
