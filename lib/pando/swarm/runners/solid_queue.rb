# frozen_string_literal: true

require "pando/fork_safety"
require "pando/swarm/broker_watch"
require "pando/swarm/runners/active_job_tally"
require "pando/swarm/runners/rails_app"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      # Runs Solid Queue in a node: a worker with its thread pool and, in some nodes, the dispatchers and the scheduler
      # of config/queue.yml and config/recurring.yml. There is no Solid Queue supervisor: Pando is the supervisor.
      #
      # Made and called on the node's main thread, which never queries the database. A thread beside the jobs does that.
      class SolidQueue
        # Seconds between two checks that all parts are alive, and after how many of them it looks at the claims of dead
        # processes and at the waiting jobs.
        LOOK = 1.0
        CLAIMS_EVERY = 30
        LAG_EVERY = 5
        # Seconds that a node waits for the database before it reports ready without it.
        PATIENCE = 5.0
        # How many nodes dispatch and schedule: while one is replaced, the other is there. Having two does no harm.
        DISPATCHERS = 2

        # Further keywords of the node line: how many nodes dispatch; what happens to the jobs of a killed node; seconds
        # between two polls for jobs; whether the workers are those of config/queue.yml.
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

        # @return [Integer, nil] jobs that could begin and have not
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

        # @raise [StandardError] the database's error, unless the database is only down
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

        # Interrupts jobs that still run, and gives them back.
        def stop
          @beside.stop
          @tally.threads.each(&:kill).each { |thread| thread.join(1) }.any? ? end_at_once : end_posts
          @tally.close
          RailsApp.disconnect
        end

        # A thread that only looks for jobs is not busy. But it may find some until it is at rest.
        def busy? = @tally.in_progress.positive? || (@quiet == true && @posts.any?(&:busy?))
        def progress = @tally.progress
        def done = @tally.done
        def failed = @tally.failed
        def in_progress = @tally.in_progress
        def healthy? = ("the thread that supervises its work has died" unless @beside.alive?)

        private

        # Rescues every error of the database: the next look asks again.
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

        # Reports an error as Solid Queue does for its threads, but not every second.
        def tell(error)
          @trouble = error unless @first.set?
          return if @told == error.class

          @told = error.class
          ::SolidQueue.instrument(:thread_error, error: error)
          ::SolidQueue.on_thread_error&.call(error)
        end

        # Queries the database first, because a thread that finds no database writes a lot to the log as it ends.
        def tend
          vacant = @posts.select(&:vacant?)
          return if vacant.empty?

          ::SolidQueue::Process.exists?
          vacant.each(&:fill)
        end

        # The pool does not know that its threads were killed, and would wait for them.
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
