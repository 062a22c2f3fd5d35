# frozen_string_literal: true

module Pando
  module Cluster
    module Canary
      # What a new generation must do before it replaces the old one.
      #
      #   requests  that its first worker must serve
      #   seconds   that it must serve
      #   longest   seconds after which it is judged by what there is
      #   kind      :code, its code may be new; :refork, its code serves already, and was forked from a warm process for
      #             the first time; :again, the same was true of the generation before
      Criteria = Struct.new(:requests, :seconds, :longest, :kind, keyword_init: true) do
        def initialize(requests:, seconds:, longest:, kind: :code) = super

        # @param scale [Float] seconds of production that a second stands for
        def faster(scale) = with(seconds: seconds / scale, longest: longest / scale)

        def for(kind) = with(kind: kind)

        # Whether it has done that. Only the state in which the process was forked is new in a refork, and many requests
        # soon try as many states as few requests do in a long time. If that is not new either, it only has to serve.
        # @param served [Integer] requests @param age [Float] seconds
        # @param workers [Integer] that have served them
        def enough?(served, age, workers = 1)
          case kind
          when :code then served >= requests * workers && age >= seconds
          when :refork then served >= requests * workers && age >= short && served * age >= requests * seconds * workers
          else served >= requests && age >= short
          end
        end

        def facts = { requests: requests, seconds: kind == :again ? short : seconds, longest: longest }

        private

        # The seconds that even proven code must serve.
        def short = seconds / 10

        def with(**changes) = self.class.new(**to_h, **changes)
      end
    end
  end
end
