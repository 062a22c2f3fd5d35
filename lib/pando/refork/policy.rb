# frozen_string_literal: true

require "pando/refork/candidates"

module Pando
  module Refork
    # What the monitor asks before it reforks. A policy overrides {threshold};
    # it holds no state, so that a failed refork needs no undoing.
    # @abstract
    class Policy
      # @param _reforks [Integer] reforks finished since the last cold boot; 0
      #   asks about the first one
      # @return [Integer, nil] the requests that a worker of the current
      #   generation must have served to be promoted; nil for never
      def threshold(_reforks)
        nil
      end

      # @param requests [Integer] served by the best candidate
      # @param reforks [Integer] as for {threshold}
      # @return [Boolean] whether to refork now
      def due?(requests:, reforks:)
        wanted = threshold(reforks)
        !wanted.nil? && requests >= wanted
      end

      # @param workers [Array] see {Candidates}
      # @return [Object, nil] the one to promote, nil when none is fit
      def choose(workers)
        Candidates.best(workers)
      end

      # @param worker [Object] that was chosen
      # @return [String] why, for an event
      def justify(worker, workers)
        Candidates.explain(worker, workers)
      end

      # Reforks before which one worker is warmed up for all.
      TRAINED = 3

      # @param reforks [Integer] as for {threshold}
      # @return [Boolean] whether one worker should be given requests before the others, for it is to be the next mold
      def trains?(reforks)
        reforks < TRAINED
      end

      # @return [Boolean] whether a user may ask for a refork (USR2)
      def manual?
        true
      end
    end
  end
end
