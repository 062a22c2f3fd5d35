# frozen_string_literal: true

require "pando/refork/candidates"

module Pando
  module Refork
    # What the monitor asks before it reforks. One that goes by counts overrides {threshold}; one that goes by what is
    # measured says so (`measures?`) and answers `decide`, see {Auto}. A policy does not hear of attempts: what it
    # remembers is about generations that have served, so that a failed refork needs no undoing.
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

      # @return [Boolean] whether it decides by memory and CPU time
      def measures?
        false
      end

      # @return [Boolean] whether it measures only to see if something has changed, so that now and then is enough
      def resting?
        false
      end

      # @return [Hash{Symbol => Object}] how it stands, for `pando status`
      def explain
        {}
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

      # What must outlive an upgrade of the monitor, see Cluster::Serializable: nothing.
      # @return [Hash{Symbol => Object}]
      def serialized_fields
        {}
      end

      # @return [self]
      def take_up(_record, _prefix = "")
        self
      end
    end
  end
end
