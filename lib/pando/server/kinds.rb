# frozen_string_literal: true

require "pando/cluster/pools/plan"
require "pando/server/refork_policy"

module Pando
  class Server
    # The kinds of worker that a configuration asks for, by the names of their pools: those that serve requests, unless
    # there are none, then the job nodes in the order of the file.
    #
    # @api private
    module Kinds
      WEB = "web"

      class << self
        # @param config [Config]
        # @return [Array<String>]
        def names(config) = [*(WEB unless config.workers.zero?), *config.nodes.map(&:name)]

        # @param name [String]
        # @return [Refork::Policy]
        def policy(config, name) = ReforkPolicy.of(config, node(config, name)&.refork)

        # @param server [Server]
        # @param name [String]
        # @return [Payload]
        # @raise [BootError] there is no such kind
        def payload(server, name)
          require "pando/server/payload"
          return Payload.new(server) if name == WEB

          require "pando/server/node_payload"
          kind = node(server.config, name) or
            raise BootError, "the configuration has no #{name}, but #{names(server.config).join(", ")}"
          NodePayload.new(server, kind)
        end

        # @param server [Server]
        # @return [Array<Cluster::Pools::Plan>] all but the first
        def companions(server)
          names(server.config).drop(1).map do |name|
            Cluster::Pools::Plan.new(payload: payload(server, name), policy: policy(server.config, name))
          end
        end

        # @return [Config::NodeKind, nil]
        def node(config, name) = config.nodes.find { |kind| kind.name == name }
      end
    end
  end
end
