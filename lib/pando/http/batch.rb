# frozen_string_literal: true

require "pando/sys"

module Pando
  module HTTP
    # What a worker does between two looks at its link: some requests, and none is
    # begun after a while.
    #
    # @api private
    module Batch
      REQUESTS = 16
      SECONDS = 0.01

      # @param worker [#leaving?]
      # @yieldreturn [Boolean] whether there was a request
      # @return [void]
      def self.serve(worker)
        limit = Sys.now + SECONDS
        left = REQUESTS
        left -= 1 while left.positive? && !worker.leaving? && yield && Sys.now < limit
      end
    end
  end
end
