# frozen_string_literal: true

require "pando/cluster"
require "pando/refork"

module Pando
  class Server
    # The kinds of worker in a configuration, by the names of their pools: first HTTP workers, unless there are none,
    # then those for some paths, then job nodes, each in the order of the file.
    module Kinds
      class << self
        def names(config)
          [*(Config::WEB unless config.workers.zero?), *config.pools.map(&:name), *config.nodes.map(&:name)]
        end

        def policy(config, name)
          require "pando/server/cluster_options"
          refork = (node(config, name) || pool(config, name)&.config)&.refork
          rules = Refork::Auto::Rules.for(config.refork_prefer, scale: TimeScale.read)
          Refork.policy(refork.nil? ? config.refork : refork, rules)
        end

        def payload(server, name)
          require "pando/server/node_payload"
          return Payload.new(server) if name == Config::WEB

          pool = pool(server.config, name) and return PathPayload.new(server, pool)
          node = node(server.config, name) and return NodePayload.new(server, node)
          raise BootError, "the configuration has no #{name}, but #{names(server.config).join(", ")}"
        end

        # @return [Array<Cluster::Pools::Plan>] of all pools but the first
        def companions(server)
          names(server.config).drop(1).map do |name|
            Cluster::Pools::Plan.new(payload: payload(server, name), policy: policy(server.config, name))
          end
        end

        # @return [Config::PathPool, nil]
        def pool(config, name) = config.pools.find { |pool| pool.name == name }

        # @return [Config::NodeKind, nil]
        def node(config, name) = config.nodes.find { |kind| kind.name == name }
      end
    end
  end
end
