# frozen_string_literal: true

module Pando
  class Batch
    # The order of jobs. A lane is the jobs of one key, the first of which may be done; a job without a key has a lane
    # of its own. A lane is in one place only: waiting in the queue, in the hands of a thread, or put off.
    #
    # @api private
    class Lanes
      def initialize
        @lanes = {}
      end

      # @return [Array<Job>, nil] the lane, if it is new and so not in any place yet
      def add(job)
        return [job] if job.key.nil?

        lane = @lanes[job.key]
        return @lanes[job.key] = [job] unless lane

        lane << job
        nil
      end

      # Its first job has come to its end.
      #
      # @return [Array<Job>, nil] the lane, if it goes on
      def advance(lane)
        job = lane.shift
        return lane unless lane.empty?

        @lanes.delete(job.key)
        nil
      end
    end
  end
end
