# frozen_string_literal: true

module Pando
  module ForkSafety
    # The kernel's view of a Ruby thread that ends. The native thread outlives Thread#join by a moment. Up
    # to 3.2, Ruby keeps it for some seconds for the next Thread.new, idle and without a lock.
    #
    # @api private
    module NativeThread
      KEPT_BY_RUBY = RUBY_VERSION < "3.3"
      # The name of such an idle thread, which no longer does what its own name said.
      IDLE = "ruby idle"
      PATIENCE = 0.2 # seconds
      PAUSE = 0.0001

      class << self
        def current = Thread.current.native_thread_id

        # A thread calls this first.
        def name(text)
          Thread.current.name = text
        end

        # A thread calls this last.
        def rest = name(IDLE)

        def wait_gone(*natives)
          return true if KEPT_BY_RUBY

          tasks = natives.compact.map { |native| "/proc/self/task/#{native}" }
          deadline = now + PATIENCE
          sleep(PAUSE) while tasks.any? { |task| File.exist?(task) } && now < deadline
          true
        end

        private

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
