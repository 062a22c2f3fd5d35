# frozen_string_literal: true

module Pando
  class Batch
    # An item that has used up its attempts.
    Failure = Struct.new(:item, :error, :attempts)

    # The outcome of the items of one Batch#run. Each list is in the order of the items.
    class Result
      # @param jobs [Array<Job>] jobs whose state no longer changes
      # @api private
      def initialize(jobs)
        @jobs = jobs
      end

      # @return [Array<Object>] the items that were done
      def done = of(:done).map(&:item)

      # @return [Array<Object>] what the block returned, for each of {#done}
      def values = of(:done).map(&:value)

      # @return [Array<Failure>] items that have used up their attempts, and whose dead letter, if any, has been written
      def failed = of(:failed).map { |job| Failure.new(job.item, job.error, job.attempts) }

      # @return [Array<Object>] items that the broker should deliver again: a timeout or a stop came before they were
      #   done, or their dead letter failed
      def unfinished = of(:unfinished).map(&:item)

      # @return [Boolean] whether all items were done
      def success? = @jobs.all? { |job| job.state == :done }

      # @return [Boolean] whether no item is unfinished
      def complete? = @jobs.none? { |job| job.state == :unfinished }

      def inspect
        "#<#{self.class} #{%i[done failed unfinished].map { |state| "#{of(state).size} #{state}" }.join(", ")}>"
      end

      private

      def of(state) = @jobs.select { |job| job.state == state }
    end
  end
end
