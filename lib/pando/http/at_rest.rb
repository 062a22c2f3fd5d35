# frozen_string_literal: true

module Pando
  module HTTP
    # Between two requests nothing of an HTTP worker runs: it can be forked at once. What Work and QueuedWork say of
    # that.
    #
    # @api private
    module AtRest
      # @return [Boolean]
      def rest? = true

      # @return [Float] seconds that it takes
      def patience = 0.0

      # It has been forked, and serves on.
      def go_on; end

      # Who brings requests asks nobody; `pando drain` tells them.
      # @return [nil]
      def quiet = nil
    end
  end
end
