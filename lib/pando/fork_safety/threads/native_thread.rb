# frozen_string_literal: true

module Pando
  module ForkSafety
    # The kernel's view of a Ruby thread that ends. The native thread outlives Thread#join by a moment. Up
    # to 3.2, Ruby keeps it for some seconds for the next Thread.new, idle and without a lock.
    module NativeThread
      KEPT_BY_RUBY = RUBY_VERSION < "3.3"
      PATIENCE = 0.2 # seconds
      PAUSE = 0.0001

      # A thread calls this last, because a kept thread no longer does what its name says.
      def self.rest
        Thread.current.name = "ruby idle"
      end

      # @param natives [Array<Integer, nil>] the kernel's ids
      def self.wait_gone(*natives)
        return true if KEPT_BY_RUBY

        tasks = natives.compact.map { |native| "/proc/self/task/#{native}" }
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        while tasks.any? { |task| File.exist?(task) }
          break if Process.clock_gettime(Process::CLOCK_MONOTONIC) - began >= PATIENCE

          sleep(PAUSE)
        end
        true
      end
    end
  end
end
