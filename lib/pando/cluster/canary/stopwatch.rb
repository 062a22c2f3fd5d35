# frozen_string_literal: true

module Pando
  module Cluster
    module Canary
      # The seconds in which requests could come. While the reactor stands still, or there is none, no request can come;
      # that says nothing about a generation, so such times do not count.
      class Stopwatch
        # The reactor shows a sign of life each second. Longer gaps than this many seconds count as a standstill.
        GAP = 2.5

        # @param heard_at [#call] given the time, says when the reactor last showed a sign of life; nil: there is none
        def initialize(heard_at, now)
          @heard_at = heard_at
          @heard = now
          @seconds = 0.0
        end

        def read(now)
          heard = @heard_at.call(now)
          return @seconds if heard.nil? || heard <= @heard

          @seconds += heard - @heard if heard - @heard <= GAP
          @heard = heard
          @seconds
        end
      end
    end
  end
end
