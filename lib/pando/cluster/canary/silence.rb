# frozen_string_literal: true

require "pando/cluster/canary/stopwatch"

module Pando
  module Cluster
    module Canary
      # For how long no request has begun or ended in any worker, although requests could come. On a server that is
      # silent nothing can be learned about a canary by waiting.
      #
      # Owned by Evaluation, in the monitor, for each generation that is begun; read at each look of its Trial.
      #
      # @api private
      class Silence
        # @param heard_at [#call] see Stopwatch
        def initialize(roster, heard_at, now)
          @roster = roster
          @heard_at = heard_at
          @since = now
          @seen = activity([])
        end

        # @param except [Array<Child>] workers that are busy with requests of their own
        # @return [Float] seconds
        def read(now, except = [])
          activity = activity(except)
          @since = now if deaf?(now) || changed?(activity)
          @seen = activity
          now - @since
        end

        private

        # A worker that has just come, or is looked at again, has not been disturbed by a client.
        def changed?(activity) = activity.any? { |worker, state| @seen.fetch(worker, state) != state }

        def activity(except)
          (@roster.workers - except).to_h { |worker| [worker, [worker.requests, worker.row.busy_since]] }
                                    .compare_by_identity
        end

        # While the reactor stands still, or there is none, clients wait and cannot be seen.
        def deaf?(now)
          heard = @heard_at.call(now)
          heard.nil? || now - heard > Stopwatch::GAP
        end
      end
    end
  end
end
