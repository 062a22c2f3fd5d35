# frozen_string_literal: true

module Pando
  class Batch
    # Decides whether an item is retried, and after how long. The pause is random, so that items that failed together
    # are not retried together.
    #
    # @api private
    class Retries
      BACKOFF = (0.5..30)
      # After so many doublings, any maximum is reached.
      DOUBLINGS = 30

      # @see Batch#initialize
      def initialize(attempts, backoff, errors)
        Demand.count(:attempts, attempts)
        Demand.errors(:retry_on, Array(errors))
        unless backoff.respond_to?(:call) || seconds?(backoff)
          raise ArgumentError, "backoff: must be a Range of seconds, or something to call"
        end

        @attempts = attempts
        @backoff = backoff
        @errors = Array(errors)
      end

      # @param job [Job] a job whose last attempt has failed
      # @return [Float, nil] seconds until the next attempt; nil: there is none
      def delay(job)
        return if job.attempts >= @attempts || @errors.none? { |pattern| matches?(pattern, job.error) }

        [Float(@backoff.respond_to?(:call) ? @backoff.call(job.attempts) : doubled(job.attempts)), 0.0].max
      rescue StandardError => e
        Complaint.make("an item is not retried, because retry_on or backoff raised", e)
      end

      private

      def matches?(pattern, error) = pattern.respond_to?(:call) ? pattern.call(error) : error.is_a?(pattern)

      def doubled(attempts)
        longest = [@backoff.begin * (2**[attempts - 1, DOUBLINGS].min), @backoff.end].min
        longest * (1 - (rand / 2))
      end

      def seconds?(range)
        range.is_a?(Range) && range.begin.is_a?(Numeric) && range.end.is_a?(Numeric) && !range.begin.negative? &&
          range.begin <= range.end
      end
    end
  end
end
