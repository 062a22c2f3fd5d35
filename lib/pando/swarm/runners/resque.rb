# frozen_string_literal: true

require "pando/errors"
require "pando/swarm/runners"

module Pando
  module Swarm
    module Runners
      # Runs Resque's jobs, each in a process of its own: a node takes a job, forks a child for it, and waits for that
      # child.
      #
      #   node :resque, count: 4, queues: %w[critical default], require: "./jobs.rb"
      #
      # The child is forked from a node that was forked from a warm one, so they share memory. One thread ({Desk}) does
      # everything, by Resque's public methods; see docs/swarm/resque.md. Made and used in a node, on its main thread.
      class Resque
        INTERVAL = 1.0 # seconds between two checks of empty queues

        # In the mold: loads the library and the jobs. Resque connects on its first use.
        # @param kind [Kind]
        # @raise [BootError]
        def self.load(kind)
          Runners.require_gem("resque", "resque")
          require "pando/swarm/runners/resque/desk"
          ::Resque.redis = kind.options[:redis] if kind.options[:redis]
          RequiredFiles.load(kind)
        end

        # @param node [Node] its concurrency has no effect: a node runs one job at a time
        def initialize(node)
          @desk = Desk.new(node, node.options.fetch(:interval, INTERVAL), node.options[:job_timeout])
        end

        # @raise [StandardError] Redis is up, and refuses us
        def start
          @desk.start
        rescue StandardError
          stop
          raise
        end

        def quiet = @desk.quiet

        # Tells the child that runs a job to end, and kills it if it does not. Its job fails.
        def stop = @desk.stop

        def busy? = @desk.busy?
        def progress = @desk.done
        def done = @desk.done
        def failed = @desk.failed
        def in_progress = @desk.in_progress
        def lag = @desk.lag
        def healthy? = ("the thread that fetches jobs has died" unless @desk.alive?)
      end
    end
  end
end
