# frozen_string_literal: true

require "pando/fork_safety"
require "pando/swarm/runners/rails_app"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      # Runs Solid Queue in a node: a worker with its thread pool and, in some nodes, the dispatchers and the scheduler
      # of config/queue.yml and config/recurring.yml. There is no Solid Queue supervisor: Pando is the supervisor.
      # Only a thread beside the jobs queries the database.
      class SolidQueue
        # The first version that it works with.
        SINCE = "1.0.0"
        # Seconds between two checks that all parts are alive, and after how many of them it looks at the claims of dead
        # processes and at the waiting jobs.
        CHECK_EVERY = 1.0
        ORPHANS_EVERY = 30
        LAG_EVERY = 5
        # After how many failed checks in a row the node is unhealthy, or its database lost, and after how many an error
        # that lasts is told again.
        FAILURES = 10
        TELL_EVERY = 60
        # Seconds that a node waits for the database before it reports ready without it.
        PATIENCE = 5.0
        # How many nodes dispatch and schedule: while one is replaced, the other is there. Two dispatchers do no harm.
        # Two schedulers may, and ProcessList knows when.
        DISPATCHERS = 2
        # Connections that a dispatcher and the scheduler take.
        DISPATCHING = 3 + 2

        # Further keywords of the node line: how many nodes dispatch; what happens to the jobs of a killed node; seconds
        # between two polls for jobs; whether the workers are those of config/queue.yml.
        OPTIONS = { dispatchers: DISPATCHERS, killed_jobs: :again, polling_interval: nil, queue_file: false }.freeze

        def self.load(kind)
          RailsApp.load(kind, "solid_queue", :SolidQueue)
          check_version
          require "pando/swarm/runners/solid_queue/processes"
          require "pando/swarm/runners/solid_queue/orphaned_jobs"
          return unless kind.options[:queue_file]

          ProcessList.check
          RailsApp.disconnect
        end

        def self.check_version
          return if Gem::Version.new(::SolidQueue::VERSION) >= Gem::Version.new(SINCE)

          raise BootError, "node :solid_queue needs Solid Queue #{SINCE} or newer, and this is " \
                           "#{::SolidQueue::VERSION} (bundle update solid_queue)"
        end
        private_class_method :check_version

        # Too few means what Solid Queue itself refuses: fewer than the threads of jobs plus two.
        # @return [ConnectionNeed, nil] nil: unknown, because the database is down
        def self.connections(kind)
          threads = ProcessList.threads(kind)
          jobs = threads.sum
          loops = (2 * threads.size) + 1 + (kind.options.fetch(:dispatchers, DISPATCHERS).positive? ? DISPATCHING : 0)
          ConnectionNeed.new(::SolidQueue::Record.connection_pool.db_config.name, jobs, jobs + 2, jobs + loops)
        rescue ::ActiveRecord::ActiveRecordError
          nil
        ensure
          RailsApp.disconnect
        end

        attr_reader :lag, :latency

        def initialize(node)
          @node = node
          @options = OPTIONS.merge(node.options)
          @counter = RailsApp::JobCounter.new
          @watch = BrokerWatch.new(node)
          @orphaned_jobs = OrphanedJobs.new(node.kind, again: @options.fetch(:killed_jobs) == :again)
          @checked = Concurrent::Event.new
          @checks = @failures = 0
          @told = []
        end

        # @raise [StandardError] the database's error, unless the database is only down
        def start
          @counter.open
          @processes = ProcessList.processes(@node, @options)
          @queues = ProcessList.queues(@node, @options)
          @checker = RailsApp.beside("solid_queue", CHECK_EVERY) { check }
          @checked.wait(PATIENCE)
          return unless @trouble

          stop
          raise @trouble
        end

        def quiet
          @quiet = true
          @processes.each(&:quiet)
        end

        # Interrupts jobs that still run, and gives them back.
        def stop
          @checker.stop
          @counter.threads.each(&:kill).each { |thread| thread.join(1) }.any? ? stop_at_once : stop_processes
          @counter.close
          RailsApp.disconnect
        end

        # A thread that only looks for jobs is not busy. But it may find some until it is at rest.
        def busy? = @counter.in_progress.positive? || (@quiet == true && @processes.any?(&:busy?))
        def progress = @counter.progress
        def done = @counter.done
        def failed = @counter.failed
        def in_progress = @counter.in_progress

        def healthy?
          return "the thread that supervises its work has died" unless @checker.alive?

          @defect
        end

        private

        # Rescues every error of the database: the next check asks again.
        def check
          restart_dead
          @processes.each(&:remove_dead)
          look_around
          @checks += 1
          @failures = 0
          @reported = @defect = nil
          @watch.found
        rescue StandardError => e
          @lag = @latency = nil
          RailsApp.away?(e) ? @watch.lost(e) : fail_with(e)
        ensure
          @checked.set
        end

        # Whatever else than a query fails here, such as one bad row, keeps no thread of this node from its work.
        def look_around
          @orphaned_jobs.recover(@processes.flat_map(&:names)) if (@checks % ORPHANS_EVERY).zero?
          look_at_queues if (@checks % LAG_EVERY).zero?
        rescue StandardError => e
          raise if RailsApp.away?(e) || e.is_a?(::ActiveRecord::ActiveRecordError)

          tell(e) unless @told.include?(e.class)
          @told |= [e.class]
        end

        def look_at_queues
          ready = ::SolidQueue::QueueSelector.new(@queues, ::SolidQueue::ReadyExecution).scoped_relations
          @lag = ready.sum(&:count)
          oldest = ready.filter_map { |jobs| jobs.minimum(:created_at) }.min
          @latency = oldest ? [Time.now - oldest, 0.0].max : 0.0
        end

        # The database may answer again, and until then another node would fare no better. Any other error that lasts
        # means that nobody looks after the threads of this node.
        def fail_with(error)
          @trouble = error unless @checked.set?
          report(error) if @reported != error.class || (@failures % TELL_EVERY).zero?
          @failures += 1
          return if @failures < FAILURES
          return @watch.lost(error) if error.is_a?(::ActiveRecord::ActiveRecordError)

          first = error.message.lines.first.to_s.chomp # more is said by error_highlight
          @defect = "its checks of Solid Queue fail again and again: #{first} (#{error.class})"
        end

        # Reports an error as Solid Queue does for its threads.
        def report(error)
          @reported = error.class
          tell(error)
        end

        def tell(error)
          ::SolidQueue.instrument(:thread_error, error: error)
          ::SolidQueue.on_thread_error&.call(error)
        end

        # Queries the database first, because a thread that finds no database writes a lot to the log as it ends.
        def restart_dead
          stopped = @processes.select(&:stopped?)
          return if stopped.empty?

          ::SolidQueue::Process.exists?
          stopped.each(&:start)
        end

        # The pool does not know that its threads were killed, and would wait for them.
        def stop_at_once
          patience = ::SolidQueue.shutdown_timeout
          ::SolidQueue.shutdown_timeout = 0
          stop_processes
        ensure
          ::SolidQueue.shutdown_timeout = patience
        end

        def stop_processes = @processes.each(&:stop)
      end
    end
  end
end
