# frozen_string_literal: true

require "pando/swarm/runners"

module Pando
  # Job nodes: workers of the cluster in which a *runner*, the adapter to a job library, runs jobs on its own threads.
  # See docs/swarm.md.
  module Swarm
    @advances = 0

    class << self
      # @api private
      # @return [Integer] how often {advance} has been called in this process
      attr_reader :advances

      # Reports progress. Call it now and then from a job that takes longer than its node's `timeout`. Without a server
      # it has no effect.
      #
      # @return [void]
      def advance
        @advances += 1
      end
    end

    # What a runner can ask about its process. Lives in that process, which is a worker of the cluster.
    class Node
      # @return [String] the name of its kind
      attr_reader :kind
      # @return [Integer] from 0, among the nodes of its kind; a node's replacement has the same number
      attr_reader :number
      # @return [Integer] jobs that the node runs at once
      attr_reader :concurrency
      # @return [Array<String>]
      attr_reader :queues
      # @return [Hash{Symbol => Object}] the other keywords of the `node` line
      attr_reader :options
      # @return [Float] seconds that a process has to finish the work that libraries have queued in it, when its last
      #   job has ended
      attr_reader :finish_within

      # Of the default `stop_timeout`.
      FINISH_WITHIN = 20.0
      private_constant :FINISH_WITHIN

      # @param kind [Config::NodeKind] @param number [Integer] @param finish_within [Float]
      def initialize(kind, number, finish_within: FINISH_WITHIN)
        @kind = kind.name
        @number = number
        @concurrency = kind.concurrency
        @queues = kind.queues
        @options = kind.options
        @finish_within = finish_within
      end

      # @return [String] such as "sidekiq 0"
      def to_s = "#{kind} #{number}"
    end
  end
end
