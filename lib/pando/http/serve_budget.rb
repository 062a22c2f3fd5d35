# frozen_string_literal: true

module Pando
  module HTTP
    # What a worker does between two looks at its link: some requests, and none is
    # begun after a while.
    #
    # @api private
    module ServeBudget
      REQUESTS = 16
      SECONDS = 0.01

      # @param worker [#leaving?]
      # @yieldreturn [Boolean] whether there was a request
      # @return [void]
      def self.serve(worker)
        limit = now + SECONDS
        left = REQUESTS
        left -= 1 while left.positive? && !worker.leaving? && yield && now < limit
      end

      # To the few milliseconds of a clock that costs next to nothing.
      def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC_COARSE)
      private_class_method :now
    end
  end
end
