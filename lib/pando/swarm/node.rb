# frozen_string_literal: true

module Pando
  module Swarm
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

      # @param kind [Kind] @param number [Integer]
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
