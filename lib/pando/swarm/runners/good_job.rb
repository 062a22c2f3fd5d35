# frozen_string_literal: true

require "pando/fork_safety"
require "pando/swarm/broker_watch"
require "pando/swarm/runners/active_job_tally"
require "pando/swarm/runners/rails_app"

module Pando
  module Swarm
    module Runners
      # Runs GoodJob in a node: one capsule, that is its schedulers with their threads, its notifier and its poller.
      # A job is locked in PostgreSQL by the connection that does it: if this process is killed, the job is free.
      #
      # Made and called on the node's main thread, which never asks the database anything.
      class GoodJob
        # Seconds between two looks at how many jobs wait.
        LOOK = 5.0
        # Seconds that the capsule's own threads have to end once no job runs: its notifier looks up once a second.
        END_WITHIN = 5

        # @param kind [Kind]
        # @raise [BootError]
        def self.load(kind)
          RailsApp.load(kind, "good_job", :GoodJob)
          ::GoodJob.shutdown # in development the application would do jobs by itself
          RailsApp.disconnect
        end

        # @return [Integer, nil] jobs that could be begun and are not
        attr_reader :lag

        # @param node [Node]
        def initialize(node)
          @queues = node.queues.join(",")
          # What else it may have: poll_interval, max_cache, enable_cron, ...
          @configuration = ::GoodJob::Configuration.new(
            node.options.merge(queues: @queues, threads: node.concurrency, execution_mode: :external)
          )
          @tally = ActiveJobTally.new
          @watch = BrokerWatch.new(node)
        end

        def start
          @tally.open
          @capsule = ::GoodJob::Capsule.new(configuration: @configuration)
          @capsule.start
          @beside = RailsApp.beside("good_job lag", LOOK) { count }
        end

        # What runs goes on; its locks are kept.
        def quiet
          @quiet = true
          @capsule.shutdown(timeout: nil)
        end

        # Jobs that still run are interrupted, and free to be done by another.
        def stop
          @beside.stop
          # Its own way to interrupt waits for nobody; what runs no job is given time.
          @capsule.shutdown(timeout: @capsule.idle? ? END_WITHIN : 0)
          @tally.threads.each { |thread| thread.join(1) }
          @tally.close
          # Newer ones remember what has ended until they are told to forget it.
          ::GoodJob.prune if ::GoodJob.respond_to?(:prune)
          RailsApp.disconnect
        end

        # A thread that only looks for a job is not; but it may find one until all have come to rest.
        def busy? = @quiet ? !@capsule.idle? : @tally.in_progress.positive?
        def progress = @tally.progress
        def done = @tally.done
        def failed = @tally.failed
        def in_progress = @tally.in_progress
        def healthy? = ("its capsule was shut down by the application" if !@quiet && @capsule.shutdown?)

        private

        # While the database is away, nobody knows. GoodJob itself tells of other errors.
        def count
          @lag = ::GoodJob::Job.queue_string(@configuration.queue_string).queued.count
          @watch.found
        rescue ::ActiveRecord::ActiveRecordError => e
          @lag = nil
          @watch.lost(e) if RailsApp.away?(e)
        end
      end
    end
  end
end
