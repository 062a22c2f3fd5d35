# frozen_string_literal: true

module Pando
  class Batch
    # The order of jobs. A lane has the jobs of one key; only its first job may run. A job without a key has a lane of
    # its own. A lane is in exactly one place: in the queue, in a thread, or put off for a retry.
    #
    # @api private
    class Lanes
      def initialize
        @lanes = {}
      end

      # @return [Array<Job>, nil] the lane, if it is new and so in no place yet
      def add(job)
        return [job] if job.key.nil?

        lane = @lanes[job.key]
        return @lanes[job.key] = [job] unless lane

        lane << job
        nil
      end

      # Removes the lane's first job, which has ended.
      #
      # @return [Array<Job>, nil] the lane, if it has further jobs
      def advance(lane)
        job = lane.shift
        return lane unless lane.empty?

        @lanes.delete(job.key)
        nil
      end
    end
  end
end
