# frozen_string_literal: true

require "pando/refork/policy"

module Pando
  module Refork
    # `refork :auto`, until the policy that measures memory replaces it: 50
    # requests, then at double the age each time (100, 200, ... 51,200), then no
    # more. The first requests warm most, so the first reforks come early; the
    # doubling makes all of them together cost less CPU the longer the server
    # runs; and it ends, since a list that repeats for ever buys no memory any
    # more while it still pays for each new generation's warm-up.
    class Doubling < Policy
      # Requests before the first refork.
      FIRST = 50
      # Requests before the last one.
      LAST = 51_200

      # (see Policy#threshold)
      def threshold(reforks)
        wanted = FIRST << reforks
        wanted if wanted <= LAST
      end
    end
  end
end
