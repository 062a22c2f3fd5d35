# frozen_string_literal: true

module Bench
  module Lab
    # Runs several measurements in turn, each in a fiber, so that other work on the machine affects all of them alike.
    # Their order is another one each time, so that none always follows the same neighbour. When the time is up, each
    # ends at its next turn, so that all have had the same number.
    class Turns
      # @param seconds [Numeric, nil] nil: until each has ended by itself
      # @param seed [Integer] of their order
      # @param clock [#call] the time in seconds
      def initialize(seconds, seed: 1, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
        @clock = clock
        @random = Random.new(seed)
        @deadline = seconds && (clock.call + seconds)
      end

      # However the run ends, each measurement cleans up.
      #
      # @param measurements [Array<#call>] each gets a proc to call between two steps; it returns true if the
      #   measurement must end
      # @return [void]
      def run(measurements)
        fibers = measurements.map { |each| Fiber.new { each.call(-> { Fiber.yield }) } }
        while fibers.any?(&:alive?)
          over = over?
          fibers.select(&:alive?).shuffle(random: @random).each { |fiber| fiber.resume(over) }
        end
      ensure
        fibers.select(&:alive?).each { |fiber| abandon(fiber) }
      end

      private

      def over? = @deadline ? @clock.call > @deadline : false

      def abandon(fiber)
        fiber.raise(Interrupt)
      rescue FiberError, Interrupt
        # The measurement had not begun, or has cleaned up.
      end
    end
  end
end
