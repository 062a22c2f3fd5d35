# frozen_string_literal: true

require "pando/fork_safety"
require "pando/swarm/broker_watch"
require "pando/swarm/runners/active_job_tally"
require "pando/swarm/runners/rails_app"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      # Runs Solid Queue in a node: a worker with its pool of threads and, in some nodes, the dispatchers and the
      # scheduler of config/queue.yml and config/recurring.yml. No supervisor of Solid Queue's: the cluster is one.
      #
      # Made and called on the node's main thread, which never asks the database anything: a thread beside the jobs
      # does.
      class SolidQueue
        # Seconds between two looks whether all of it lives, and how many of them until the claims of the dead and the
        # jobs that wait are looked at.
        LOOK = 1.0
        CLAIMS_EVERY = 30
        LAG_EVERY = 5
        # Seconds that a node waits for the database before it is ready without.
        PATIENCE = 5.0
        # How many nodes dispatch and schedule: while one is replaced, the other is there. Two do no harm.
        DISPATCHERS = 2

        # What a node line may say besides: how many nodes dispatch; what becomes of the jobs of a node that was killed;
        # seconds between two looks for jobs; whether the workers are those of config/queue.yml.
        OPTIONS = { dispatchers: DISPATCHERS, killed_jobs: :again, polling_interval: nil, queue_file: false }.freeze

        # @param kind [Kind]
        # @raise [BootError]
        def self.load(kind)
          RailsApp.load(kind, "solid_queue", :SolidQueue)
          require "pando/swarm/runners/solid_queue/line_up"
          require "pando/swarm/runners/solid_queue/claims"
          return unless kind.options[:queue_file]

          LineUp.check
          RailsApp.disconnect
        end

        # @return [Integer, nil] jobs that could be begun and are not
        attr_reader :lag

        # @param node [Node]
        def initialize(node)
          @node = node
          @options = OPTIONS.merge(node.options)
          @tally = ActiveJobTally.new
          @watch = BrokerWatch.new(node)
          @claims = Claims.new(node.kind, again: @options.fetch(:killed_jobs) == :again)
          @first = Concurrent::Event.new
          @looks = 0
        end

        # @raise [StandardError] what the database has against it, unless it is only away
        def start
          @tally.open
          @posts = LineUp.posts(@node, @options)
          @queues = LineUp.queues(@node, @options)
          @beside = RailsApp.beside("solid_queue", LOOK) { look }
          @first.wait(PATIENCE)
          return unless @trouble

          stop
          raise @trouble
        end

        def quiet
          @quiet = true
          @posts.each(&:quiet)
        end

        # Jobs that still run are interrupted, and given back.
        def stop
          @beside.stop
          @tally.threads.each(&:kill).each { |thread| thread.join(1) }.any? ? end_at_once : end_posts
          @tally.close
          RailsApp.disconnect
        end

        # A thread that only looks for jobs is not; but it may find some until it is at rest.
        def busy? = @tally.in_progress.positive? || (@quiet == true && @posts.any?(&:busy?))
        def progress = @tally.progress
        def done = @tally.done
        def failed = @tally.failed
        def in_progress = @tally.in_progress
        def healthy? = ("the thread that looks after its work has died" unless @beside.alive?)

        private

        # Whatever the database says: it will be asked again.
        def look
          tend
          @posts.each(&:clear)
          @claims.recover(@posts.flat_map(&:ids)) if (@looks % CLAIMS_EVERY).zero?
          @lag = ::SolidQueue::ReadyExecution.aggregated_count_across(@queues) if (@looks % LAG_EVERY).zero?
          @looks += 1
          @told = nil
          @watch.found
        rescue StandardError => e
          @lag = nil
          RailsApp.away?(e) ? @watch.lost(e) : tell(e)
        ensure
          @first.set
        end

        # As Solid Queue tells of what goes wrong in its threads, but not each second anew.
        def tell(error)
          @trouble = error unless @first.set?
          return if @told == error.class

          @told = error.class
          ::SolidQueue.instrument(:thread_error, error: error)
          ::SolidQueue.on_thread_error&.call(error)
        end

        # Asked first, for a thread that finds no database ends with much noise.
        def tend
          vacant = @posts.select(&:vacant?)
          return if vacant.empty?

          ::SolidQueue::Process.exists?
          vacant.each(&:fill)
        end

        # Its pool knows nothing of threads that were killed, and would be waited for.
        def end_at_once
          patience = ::SolidQueue.shutdown_timeout
          ::SolidQueue.shutdown_timeout = 0
          end_posts
        ensure
          ::SolidQueue.shutdown_timeout = patience
        end

        def end_posts = @posts.each(&:stop)
      end
    end
  end
end
