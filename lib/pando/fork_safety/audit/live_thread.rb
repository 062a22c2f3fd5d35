# frozen_string_literal: true

require "pando/fork_safety/audit/sites"
require "pando/fork_safety/finding"
require "pando/fork_safety/libraries"

module Pando
  module ForkSafety
    module Audit
      # Where a thread comes from: the line of its block, and the gem that this line belongs to. Threads of one origin
      # count as one. This class writes the messages about a lost thread, so that the log, `pando status` and the doctor
      # say the same. A value.
      class ThreadOrigin
        # The most bytes of a location in a key; the end of a path says more than its beginning.
        LONGEST = 300
        # The most characters of a path in a message.
        SHORT = 120
        APPLICATION = "the application"
        RUBY = "Ruby's standard library"
        private_constant :LONGEST, :SHORT, :APPLICATION, :RUBY

        # @return [String] the same for all threads of one origin, in every process
        def self.key(location, name = nil)
          text = location || "C code (#{name || "no name"})"
          (text.byteslice(-LONGEST, LONGEST)&.scrub("") || text).tr("\n", "?")
        end

        # @return [String] see {key}
        attr_reader :key
        # @return [String, nil] the gem's name; nil: the thread belongs to the app or to Ruby
        attr_reader :gem_name
        # @return [String, nil] as the app named the thread
        attr_reader :name

        # @param kind [String] what it is, in messages
        # @param directory [String] the app's
        def initialize(location, name = nil, kind: "thread", directory: Dir.pwd)
          @key = self.class.key(location, name)
          @location = location
          @name = name
          @kind = kind
          @directory = directory
          @specification = specification
          @gem_name = @specification&.name
        end

        # @return [String] the gem and its version, or the application, or Ruby
        def owner
          return [@specification.name, @specification.version].join(" ") if @specification

          @location && Sites.standard?(@location) ? RUBY : APPLICATION
        end

        # @return [String] "file:line", relative to the directory of its owner
        def place
          return @key unless @location

          folder = @specification&.full_gem_path || @directory
          short = @location.delete_prefix("#{folder}/").tr("\n", "?")
          short.size > SHORT ? "...#{short[-SHORT..]}" : short
        end

        # @return [String] what was found and why it matters, without a full stop
        def message
          called = " (#{name.inspect})" if name
          "No forked process has the #{@kind}#{called} of #{owner} that #{place} starts: " \
            "its work silently stops there"
        end

        # @param row [String, nil] the advice of the library table
        # @return [String] what to do
        def advice(row = nil)
          "#{row || "Stop the thread in before_fork and start it again in after_worker_fork, or register it with " \
                    "Pando::ForkSafety.thread (docs/fork-hooks.md)."} " \
            "To accept the loss, set fork_safety threads: { allow: [#{(gem_name || place).inspect}] }."
        end

        # @param pattern [String] a gem's name, or a path or the end of one, with or without the line
        def match?(pattern)
          gem_name == pattern || "/#{@location}".match?(%r{/#{Regexp.escape(pattern.delete_prefix("/"))}(?=[/:]|\z)})
        end

        private

        # The innermost directory counts: a gem may lie inside another one.
        def specification
          return unless @location

          owners = Gem.loaded_specs.each_value.select { |one| @location.start_with?("#{one.full_gem_path}/") }
          owners.max_by { |one| one.full_gem_path.size }
        end
      end

      # What a thread and a timer task have in common: no child goes on with it. A class that includes this has a name,
      # a kind, a location, an excuse, a label and a Hash.
      module BackgroundWork
        def origin = @origin ||= ThreadOrigin.new(location, name, kind: kind)

        # @return [String] see {ThreadOrigin.key}
        def key = ThreadOrigin.key(location, name)

        def advice = origin.advice(library_advice)

        def finding
          return if excuse

          Finding.new(:lost_thread, subject: label, location: location, message: origin.message, advice: advice,
                                    details: { owner: origin.owner, **to_h })
        end

        private

        def revival
          library = location && Libraries.reviving(location)
          "#{library} starts it again in each child" if library
        end

        def library_advice = origin.gem_name && Libraries.advice(origin.gem_name)
      end

      # A Ruby thread that is alive beside the thread that forks. No child has it.
      class LiveThread
        include BackgroundWork

        INSPECT = Thread.instance_method(:inspect)
        OURS = "#{File.expand_path("../..", __dir__)}/".b.freeze
        private_constant :INSPECT, :OURS

        # @return [Array<LiveThread>] all but the calling thread
        def self.all
          others = Thread.list - [Thread.current]
          others.select(&:alive?).map { |thread| new(thread) }
        end

        # Ruby 3.1 and later: #<Thread:0x0001@name /path/file.rb:7 sleep_forever>. A path's bytes may not be
        # valid in the locale, so they are used as they are.
        #
        # @return [String, nil] "file:line" of the block it runs, in UTF-8; nil for a thread of C code
        def self.site(thread)
          text = INSPECT.bind_call(thread).b
          text = text.sub("@#{thread.name}".b, "") if thread.name
          text[/\A#<\S+ (.+:\d+) \w+>\z/n, 1]&.force_encoding(Encoding::UTF_8)&.scrub
        end

        # @return [String, nil] "file:line" of the block it runs; nil for a thread of C code
        attr_reader :location
        attr_reader :thread

        def initialize(thread)
          @thread = thread
          @location = self.class.site(thread)
        end

        # @return [String, nil] why its loss is harmless
        def excuse
          return "it waits for a child of this process" if thread.is_a?(Process::Waiter)
          # A registered thread runs a block of Pando's, as Pando's own threads do.
          return "it is registered, or Pando's own" if location.to_s.b.start_with?(OURS)
          return "its thread variable fork_safe is set" if thread.thread_variable_get(:fork_safe) # as Puma reads it

          revival
        end

        def name = thread.name
        def alive? = thread.alive?

        # @return [String] the same in each run
        def label = name ? "thread #{name.inspect}" : "a thread"

        # @return [Hash{Symbol => Object}] for JSON
        def to_h = { type: :ruby, name: name, location: location, status: thread.status.to_s, excuse: excuse }.compact

        private

        def kind = "thread"
      end
    end
  end
end
