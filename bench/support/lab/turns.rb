# frozen_string_literal: true

module Bench
  module Lab
    # Several measurements at a time, in turn: each in a fiber of its own, so that what the machine does besides hits
    # all of them alike. When the time is up, each ends at its next turn, so all have had as many.
    class Turns
      # @param seconds [Numeric, nil] nil: until each has ended by itself
      # @param clock [#call] the time in seconds
      def initialize(seconds, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
        @clock = clock
        @deadline = seconds && (clock.call + seconds)
      end

      # However this ends, each measurement cleans up.
      #
      # @param measurements [Array<#call>] each is given a proc to call between two steps: true when it is to end
      # @return [void]
      def run(measurements)
        fibers = measurements.map { |each| Fiber.new { each.call(-> { Fiber.yield }) } }
        while fibers.any?(&:alive?)
          over = over?
          fibers.select(&:alive?).each { |fiber| fiber.resume(over) }
        end
      ensure
        fibers.select(&:alive?).each { |fiber| abandon(fiber) }
      end

      private

      def over? = @deadline ? @clock.call > @deadline : false

      def abandon(fiber)
        fiber.raise(Interrupt)
      rescue FiberError, Interrupt
        # It had not begun, or has cleaned up.
      end
    end
  end
end
