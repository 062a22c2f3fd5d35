# frozen_string_literal: true

require "pando/refork"

module Pando
  class Server
    # What the configuration says of reforking, as the monitor wants to be told.
    #
    # @api private
    module ReforkPolicy
      # @param config [Config]
      # @param refork [Object, nil] as Config#refork, of a kind of nodes; nil: the setting's
      # @return [Refork::Policy]
      def self.of(config, refork = nil)
        rules = Refork::Auto::Rules.new(rho: config.refork_rho, floor: config.refork_floor,
                                        ceiling: config.refork_ceiling, memory: config.refork_memory,
                                        thrift: config.jit != :trainee) # the others' JIT waits for the first one
        Refork.policy(refork.nil? ? config.refork : refork, rules)
      end
    end
  end
end
