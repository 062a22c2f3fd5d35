# frozen_string_literal: true

module Pando
  class Batch
    # An item that no attempt is left for.
    Failure = Struct.new(:item, :error, :attempts)

    # What has become of the items of one Batch#run, each list in their order.
    class Result
      # @param jobs [Array<Job>] nothing of which changes any more
      # @api private
      def initialize(jobs)
        @jobs = jobs
      end

      # @return [Array<Object>] items that were done
      def done = of(:done).map(&:item)

      # @return [Array<Object>] what the block returned, for each of {#done}
      def values = of(:done).map(&:value)

      # @return [Array<Failure>] whose attempts are used up, and whose dead letter has been written if there is one
      def failed = of(:failed).map { |job| Failure.new(job.item, job.error, job.attempts) }

      # @return [Array<Object>] items that the broker should deliver again: not begun or not waited for because of the
      #   timeout or a stop, or their dead letter has failed
      def unfinished = of(:unfinished).map(&:item)

      # @return [Boolean] whether each item was done
      def success? = @jobs.all? { |job| job.state == :done }

      # @return [Boolean] whether none is unfinished
      def complete? = @jobs.none? { |job| job.state == :unfinished }

      def inspect
        "#<#{self.class} #{%i[done failed unfinished].map { |state| "#{of(state).size} #{state}" }.join(", ")}>"
      end

      private

      def of(state) = @jobs.select { |job| job.state == state }
    end
  end
end
