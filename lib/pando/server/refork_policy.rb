# frozen_string_literal: true

require "pando/refork"
require "pando/server/time_scale"

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
        worth = config.jit != :trainee # else the others' JIT waits for the first one
        rules = Refork::Auto::Rules.for(config.refork_prefer, scale: TimeScale.read, worth: worth)
        Refork.policy(refork.nil? ? config.refork : refork, rules)
      end
    end
  end
end
