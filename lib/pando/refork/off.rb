# frozen_string_literal: true

require "pando/refork/policy"

module Pando
  module Refork
    # `refork false`: never, not even when asked. The first mold serves for good.
    class Off < Policy
      # (see Policy#trains?)
      def trains?(_reforks)
        false
      end

      # (see Policy#manual?)
      def manual?
        false
      end
    end
  end
end
