# frozen_string_literal: true

require "pando/refork/policy"

module Pando
  module Refork
    # `refork :manual`: only when somebody asks for it (USR2).
    class Manual < Policy
      # Nobody knows when its time comes.
      # (see Policy#trains?)
      def trains?(_reforks)
        false
      end
    end
  end
end
