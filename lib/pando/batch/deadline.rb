# frozen_string_literal: true

module Pando
  class Batch
    # A point in time to wait until, on the monotonic clock.
    #
    # @api private
    class Deadline
      def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # @param seconds [Numeric, nil] nil: no deadline
      def self.in(seconds) = new(seconds && (now + seconds))

      def initialize(moment)
        @moment = moment
      end

      # @return [Float, nil] seconds, as Mailbox#pop and Thread#join take them
      def left = @moment && [@moment - self.class.now, 0.0].max
    end
  end
end
