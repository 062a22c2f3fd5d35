# frozen_string_literal: true

require "pando/swarm/runners"

module Pando
  # Job nodes: workers of the cluster in which a *runner*, the adapter to a job library, does jobs on threads of its
  # own. docs/swarm.md is its description.
  module Swarm
    @advances = 0

    class << self
      # @api private
      # @return [Integer] how often {advance} has been called in this process
      attr_reader :advances

      # To be called now and then by a job that takes longer than its node's `timeout`: it has come a step further.
      # Without a server it does nothing of use, and no harm.
      #
      # @return [void]
      def advance
        @advances += 1
      end
    end

    # What a runner knows about its process. Lives in that process, a worker of the cluster.
    class Node
      # @return [String] the name of its kind
      attr_reader :kind
      # @return [Integer] from 0, among the nodes of its kind; the replacement of a node has the same number
      attr_reader :number
      # @return [Integer] jobs that the node runs at once
      attr_reader :concurrency
      # @return [Array<String>]
      attr_reader :queues
      # @return [Hash{Symbol => Object}] the other keywords of the `node` line
      attr_reader :options

      # @param kind [Config::NodeKind] @param number [Integer]
      def initialize(kind, number)
        @kind = kind.name
        @number = number
        @concurrency = kind.concurrency
        @queues = kind.queues
        @options = kind.options
      end

      # @return [String] such as "sidekiq 0"
      def to_s = "#{kind} #{number}"
    end
  end
end
