# frozen_string_literal: true

module Pando
  module Cluster
    module Canary
      # How long a proof has lasted while requests could come. That none came while the reactor stood still, or there
      # was none, says nothing about a generation: such times do not count.
      #
      # Owned by a Trial or a Watch, in the monitor; read at each of its looks.
      #
      # @api private
      class Stopwatch
        # Seconds between two signs of life of the reactor, of which there is one a second, that are no standstill.
        GAP = 2.5

        # @param heard_at [#call] given the present, tells when clients were heard last, on Sys.now; nil: they are not
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
    end
  end
end
