# frozen_string_literal: true

require "pando/refork"

module Pando
  class Server
    # What the configuration says of reforking, as the monitor wants to be told.
    #
    # @api private
    module ReforkPolicy
      # @param config [Config]
      # @return [Refork::Policy]
      def self.of(config)
        rules = Refork::Auto::Rules.new(rho: config.refork_rho, floor: config.refork_floor,
                                        ceiling: config.refork_ceiling, memory: config.refork_memory,
                                        thrift: config.jit != :trainee) # the others' JIT waits for the first one
        Refork.policy(config.refork, rules)
      end
    end
  end
end
