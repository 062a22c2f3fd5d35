# frozen_string_literal: true

module Pando
  module Cluster
    module Canary
      # The seconds in which requests could come. While the reactor stands still, or there is none, no request can come;
      # that says nothing about a generation, so such times do not count.
      #
      # Owned by an Observation, in the monitor.
      class Stopwatch
        # The reactor shows a sign of life each second. Longer gaps than this many seconds count as a standstill.
        GAP = 2.5

        # @param heard_at [#call] given the current time, returns when the reactor last showed a sign of life; nil:
        #   there is no reactor
        def initialize(heard_at, now)
          @heard_at = heard_at
          @heard = now
          @seconds = 0.0
        end

        # @return [Float] seconds
        def read(now)
          heard = @heard_at.call(now)
          return @seconds if heard.nil? || heard <= @heard

          @seconds += heard - @heard if heard - @heard <= GAP
          @heard = heard
          @seconds
        end
      end

      # The time since a request last began or ended in any worker, although requests could come. On a silent server
      # nothing can be learned about a canary by waiting.
      #
      # Made by Evaluation, in the monitor, for each generation that begins; read by its Trial.
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

        # A worker that was not in the last reading does not count.
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
