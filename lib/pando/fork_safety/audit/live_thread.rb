# frozen_string_literal: true

require "pando/fork_safety/audit/thread_origin"
require "pando/fork_safety/finding"
require "pando/fork_safety/libraries"

module Pando
  module ForkSafety
    module Audit
      # A Ruby thread that is alive beside the thread that forks. No child has it.
      class LiveThread
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
        # @param thread [Thread]
        # @return [String, nil] "file:line" of the block it runs, in UTF-8; nil for a thread of C code
        def self.site(thread)
          text = INSPECT.bind_call(thread).b
          text = text.sub("@#{thread.name}".b, "") if thread.name
          text[/\A#<\S+ (.+:\d+) \w+>\z/n, 1]&.force_encoding(Encoding::UTF_8)&.scrub
        end

        # @return [Thread]
        attr_reader :thread
        # @return [String, nil] "file:line" of the block it runs; nil for a thread of C code
        attr_reader :location
        # @return [String, nil] as the app named it
        attr_reader :name

        # @param thread [Thread]
        def initialize(thread)
          @thread = thread
          @name = thread.name
          @location = self.class.site(thread)
        end

        # @return [String, nil] why its loss is harmless
        def excuse
          return "it waits for a child of this process" if thread.is_a?(Process::Waiter)
          return "it is registered" if location.to_s.b.start_with?(OURS) # registered threads survive a fork
          return "its thread variable fork_safe is set" if thread.thread_variable_get(:fork_safe) # as Puma reads it

          library = location && Libraries.reviving(location)
          "#{library} starts it again in each child" if library
        end

        # @return [ThreadOrigin]
        def origin = @origin ||= ThreadOrigin.new(location, name)

        # @return [String] see {ThreadOrigin.key}
        def key = ThreadOrigin.key(location, name)

        # @return [String] what to do about the loss
        def advice = origin.advice(origin.gem_name && Libraries.advice(origin.gem_name))

        # @return [String] the same in each run
        def label = name ? "thread #{name.inspect}" : "a thread"

        # @return [Finding, nil]
        def finding
          return if excuse

          Finding.new(:lost_thread, subject: label, location: location, message: origin.message, advice: advice,
                                    details: { owner: origin.owner, **to_h })
        end

        # @return [Hash{Symbol => Object}] for JSON
        def to_h = { type: :ruby, name: name, location: location, status: thread.status.to_s, excuse: excuse }.compact
      end
    end
  end
end
