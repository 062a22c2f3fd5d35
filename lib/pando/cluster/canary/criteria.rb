# frozen_string_literal: true

module Pando
  module Cluster
    module Canary
      # What a new generation must do before it replaces the old one.
      #
      #   requests  that its first worker serves
      #   seconds   that it serves at least
      #   longest   seconds after which what there is must do
      #   kind      :code, it may be new; :refork, it is code that serves, and was forked from a warm process for the
      #             first time; :again, so was the generation before
      #
      # @api private
      Criteria = Struct.new(:requests, :seconds, :longest, :kind, keyword_init: true) do
        def initialize(requests:, seconds:, longest:, kind: :code) = super

        # @param scale [Float] seconds of production that a second stands for
        # @return [Criteria]
        def faster(scale) = with(seconds: seconds / scale, longest: longest / scale)

        # @param kind [Symbol]
        # @return [Criteria]
        def for(kind) = with(kind: kind)

        # Whether so much has been seen. A refork is new only in the state that a process is forked in, and many
        # requests soon try as many states as a few do in a long time. What has been forked before need only serve.
        # @param served [Integer] requests @param age [Float] seconds
        # @param workers [Integer] that have served them
        def enough?(served, age, workers = 1)
          case kind
          when :code then served >= requests * workers && age >= seconds
          when :refork then served >= requests * workers && age >= short && served * age >= requests * seconds * workers
          else served >= requests && age >= short
          end
        end

        # @return [Hash] for events
        def facts = { requests: requests, seconds: kind == :again ? short : seconds, longest: longest }

        private

        # Seconds that even proven code serves: a tenth.
        def short = seconds / 10

        def with(**changes) = self.class.new(**to_h, **changes)
      end
    end
  end
end
