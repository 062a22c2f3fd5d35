# frozen_string_literal: true

require "pando/errors"
require "pando/fork_safety/libraries/constants"
require "pando/fork_safety/status"

module Pando
  module ForkSafety
    module Libraries
      # Notices the first call of a method, after which this process must not be forked.
      module FirstUse
        @watched = {}

        class << self
          def watched?(mark) = @watched.key?(mark)

          def watch(mark, library)
            owner = Constants.find(mark.constant) or return
            owner = owner.singleton_class if mark.singleton
            name = mark.method_name
            return if @watched[mark] || !(owner.method_defined?(name) || owner.private_method_defined?(name))

            @watched[mark] = true
            owner.prepend(watcher(name, "#{library}: #{mark.reason}"))
            nil
          end

          private

          def watcher(name, reason)
            told = false
            Module.new do
              define_method(name) do |*arguments, &block|
                unless told
                  told = true
                  ForkSafety.give_up(reason)
                end
                super(*arguments, &block)
              end
              ruby2_keywords(name)
            end
          end
        end
      end

      # A library could not be prepared for a fork.
      class Unsafe < Error; end

      # A library cannot be prepared for a fork now, and has named the obstacle (ForkSafety.obstruct).
      class Obstructed < Unsafe; end

      # Prepares the loaded libraries around one fork: {#around} in the forking process, {#settle} in its child.
      class Preparation
        # @param libraries [Array<Library>] in the order of preparation
        # @param prepared [Array<String>] libraries that the user's hooks take care of
        def initialize(libraries, on_failure = nil, prepared: [])
          @libraries = libraries
          @on_failure = on_failure
          @prepared = prepared
          @ready = []
          @forker = Process.pid
        end

        def around(strict)
          @libraries.each { |library| refuse_threads(library, strict) if library.unsafe_threads? }
          @libraries.each { |library| refuse_use(library) || refuse_late_comer(library) } if strict
          @libraries.each { |library| prepare(library, strict) if library.handled? }
          yield
        ensure
          recover(:in_parent) if Process.pid == @forker
        end

        def settle
          recover(:in_child) unless Process.pid == @forker
        end

        private

        def prepare(library, strict)
          library.step(:before_fork)&.call
          @ready << library
        rescue StandardError => e
          fail_for(library, e, strict)
        end

        # After the fork, an error cannot be undone by not forking, so it is only reported.
        def recover(step)
          @ready.reverse_each do |library|
            library.step(step)&.call
          rescue StandardError => e
            @on_failure&.call(library.name, e)
          end
        end

        # A native thread does not exist in a child, but its locks and the code that waits for it do.
        def refuse_threads(library, strict)
          count = Threads.names.count { |name| library.thread?(name) }
          return unless count.positive?

          reason = "#{count} of its native threads are alive, and a child has none of them"
          fail_for(library, Unsafe.new(reason), strict)
        end

        def refuse_use(library)
          rule = library.rule
          return if rule.nil? || @prepared.include?(library.name) || !rule.refuses?

          fail_for(library, Unsafe.new("#{rule.note} #{rule.advice}"), true)
        end

        # The library was not loaded yet when Pando started to watch for its first use.
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
