# frozen_string_literal: true

require "pando/fork_safety"
require "pando/swarm/runners/rails_app"

module Pando
  module Swarm
    module Runners
      # Runs GoodJob in a node: one capsule, which has schedulers with their threads, a notifier and a poller. The
      # connection that runs a job holds a lock on it in PostgreSQL. If this process is killed, the job is free.
      class GoodJob
        # Seconds between two counts of the waiting jobs.
        COUNT_EVERY = 5.0
        # Seconds that the capsule's own threads have to end once no job runs: its notifier checks once a second.
        END_WITHIN = 5

        def self.load(kind)
          RailsApp.load(kind, "good_job", :GoodJob)
          ::GoodJob.shutdown # in development the app would run jobs itself
          RailsApp.disconnect
        end

        attr_reader :lag, :latency

        def initialize(node)
          @queues = node.queues.join(",")
          # Further options may be poll_interval, max_cache, enable_cron, ...
          @configuration = ::GoodJob::Configuration.new(
            node.options.merge(queues: @queues, threads: node.concurrency, execution_mode: :external)
          )
          @counter = RailsApp::JobCounter.new
          @watch = BrokerWatch.new(node)
        end

        def start
          @counter.open
          @capsule = ::GoodJob::Capsule.new(configuration: @configuration)
          @capsule.start
          @lag_thread = RailsApp.beside("good_job lag", COUNT_EVERY) { count }
        end

        # Running jobs go on and keep their locks.
        def quiet
          @quiet = true
          @capsule.shutdown(timeout: nil)
        end

        # Interrupts jobs that still run. Another node can then run them.
        def stop
          @lag_thread.stop
          # GoodJob interrupts jobs without waiting. A capsule without jobs gets time to end.
          @capsule.shutdown(timeout: @capsule.idle? ? END_WITHIN : 0)
          @counter.threads.each { |thread| thread.join(1) }
          @counter.close
          # Newer versions of GoodJob remember what has ended until they are told to forget it.
          ::GoodJob.prune if ::GoodJob.respond_to?(:prune)
          RailsApp.disconnect
        end

        # A thread that only looks for a job is not busy. But it may find one until all threads have come to rest.
        def busy? = @quiet ? !@capsule.idle? : @counter.in_progress.positive?
        def progress = @counter.progress
        def done = @counter.done
        def failed = @counter.failed
        def in_progress = @counter.in_progress
        def healthy? = ("its capsule was shut down by the application" if !@quiet && @capsule.shutdown?)

        private

        # The jobs of all thread pools ("mailers:2;*:3"). Job.queue_string understands one pool, without its threads.
        # A job that is in two pools counts once.
        def jobs
          pools = @configuration.queue_string.split(/[;|]/).map { |pool| pool[/\A[^:]*/] }
          pools.map { |queues| ::GoodJob::Job.queue_string(queues) }.reduce(::GoodJob::Job.none, :or)
        end

        # While the database is down, the number is unknown. GoodJob itself reports other errors.
        def count
          queued = jobs.queued
          @lag = queued.count
          oldest = queued.minimum(Arel.sql("COALESCE(scheduled_at, created_at)"))
          @latency = oldest ? [Time.now - oldest, 0.0].max : 0.0
          @watch.found
        rescue ::ActiveRecord::ActiveRecordError => e
          @lag = @latency = nil
          @watch.lost(e) if RailsApp.away?(e)
        end
      end
    end
  end
end
