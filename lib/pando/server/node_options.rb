# frozen_string_literal: true

require "pando/server/cluster_options"
require "pando/server/kinds"

module Pando
  class Server
    # What the cluster must know of one kind of job nodes.
    #
    # @api private
    class NodeOptions < ClusterOptions
      # @param config [Config] @param kind [Config::NodeKind]
      # @return [Cluster::Options]
      def self.of(config, kind) = new(config, kind).options

      def initialize(config, kind)
        super(config)
        @kind = kind
      end

      def options
        super.tap do |options|
          options.workers = @kind.count
          options.exclusive = @kind.exclusive
          options.mold = :keep # to fork another one, a node would have to rest
          options.surge = @kind.surge
          options.unavailable = @kind.unavailable
          options.shared = @kind.shared
          options.jobs = true
          options.health = nil
          options.services = [] unless first?
        end
      end

      private

      def auto? = false
      def canary_terms = @kind.canary

      # Services are there once, whatever kinds of worker there are.
      def first? = Kinds.names(@config).first == @kind.name

      def deadlines = super.merge(longest_request: @kind.quiet_timeout, longest_wait: 0.0)

      def memory = super.tap { |limits| limits.worker = @kind.memory }
    end
  end
end
