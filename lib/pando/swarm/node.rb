# frozen_string_literal: true

module Pando
  module Swarm
    # What a runner is told of the process that it runs in. Lives in that process, a worker of the cluster.
    class Node
      # @return [String] the name of its kind
      attr_reader :kind
      # @return [Integer] 0 and up among the nodes of its kind; who replaces this node has the same
      attr_reader :number
      # @return [Integer] jobs that it is to do at once
      attr_reader :concurrency
      # @return [Array<String>]
      attr_reader :queues
      # @return [Hash{Symbol => Object}] what else the `node` line says
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
