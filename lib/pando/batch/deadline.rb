# frozen_string_literal: true

module Pando
  class Batch
    # A moment until which is waited, on the only clock that knows no jumps.
    #
    # @api private
    class Deadline
      def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # @param seconds [Numeric, nil] nil: there is none
      def self.in(seconds) = new(seconds && (now + seconds))

      def initialize(moment)
        @moment = moment
      end

      # @return [Float, nil] seconds, as Mailbox#pop and Thread#join take them
      def left = @moment && [@moment - self.class.now, 0.0].max
    end
  end
end
