# frozen_string_literal: true

module Pando
  module Cluster
    # How long to wait before the next try: doubles with each failure, to a
    # limit. Failures long past count no more, so that it tells a rate.
    #
    # @api private
    class Backoff
      FIRST = 0.25
      LIMIT = 30.0
      MEMORY = 60.0 # seconds without a failure after which all is forgotten

      attr_reader :failures

      # @param limit [Float] seconds
      def initialize(limit = LIMIT)
        @limit = limit
        reset
      end

      def reset
        @failures = 0
        @until = @last = 0.0
      end

      # @return [Float] seconds until the next try
      def fail(now = Sys.now)
        @failures = 0 if now - @last > MEMORY
        @last = now
        delay = [FIRST * (2**[@failures, 16].min), @limit].min
        @failures += 1
        @until = now + delay
        delay
      end

      def over?(now = Sys.now) = now >= @until

      # @return [Float, nil] when the wait ends, nil when there is none
      def due(now = Sys.now) = over?(now) ? nil : @until
    end
  end
end
