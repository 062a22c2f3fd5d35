# frozen_string_literal: true

require "pando/errors"
require "pando/swarm/runners"

module Pando
  module Swarm
    module Runners
      # Resque's jobs, one process for each: a node takes a job, forks a child for it, and waits for that child.
      #
      #   node :resque, count: 4, queues: %w[critical default], require: "./jobs.rb"
      #
      # The child is forked from a node that was forked from a warm one, so it shares what both know. Everything is done
      # by Resque's public parts, in one thread ({Desk}); see docs/swarm/resque.md. Made and used in a node, on its main
      # thread.
      class Resque
        INTERVAL = 1.0 # seconds between two looks into empty queues

        # In the mold: the library and the jobs. Resque connects when it is first used.
        # @param kind [Kind]
        # @raise [BootError]
        def self.load(kind)
          Runners.require_gem("resque", "resque")
          require "pando/swarm/runners/resque/desk"
          ::Resque.redis = kind.options[:redis] if kind.options[:redis]
          RequiredFiles.load(kind)
        end

        # @param node [Node] whose concurrency is of no account: it does one job at a time
        def initialize(node)
          @desk = Desk.new(node, node.options.fetch(:interval, INTERVAL), node.options[:job_timeout])
        end

        # @raise [StandardError] Redis is there, and does not let us work
        def start
          @desk.start
        rescue StandardError
          stop
          raise
        end

        def quiet = @desk.quiet

        # The child that does a job is told to end, and killed if it does not; its job is one that failed.
        def stop = @desk.stop

        def busy? = @desk.busy?
        def progress = @desk.done
        def done = @desk.done
        def failed = @desk.failed
        def in_progress = @desk.in_progress
        def lag = @desk.lag
        def healthy? = ("the thread that takes jobs has died" unless @desk.alive?)
      end
    end
  end
end
