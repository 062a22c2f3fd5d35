# frozen_string_literal: true

require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # What a user may want otherwise.
      #
      #   rho      how many percent of memory one percent of CPU must buy
      #   floor    seconds from one generation's rollout to the next refork
      #   ceiling  seconds after which there is one in any case; nil: never
      #   memory   bytes that workers and mold shall stay below, whatever it costs; nil: no target
      #   thrift   whether the first one must be worth its price; not if something else waits for it
      Rules = Struct.new(:rho, :floor, :ceiling, :memory, :thrift, keyword_init: true) do
        def initialize(rho: 3, floor: 10.0, ceiling: nil, memory: nil, thrift: true) = super
      end
    end
  end
end
