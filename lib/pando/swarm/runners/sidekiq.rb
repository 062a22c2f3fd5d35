# frozen_string_literal: true

require "pando/swarm/runners/rails_app"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      # Runs Sidekiq 7 and 8 in a node, as an embedding process; docs/swarm/sidekiq.md.
      #
      # The jobs run on Sidekiq's threads. Everything that queries Redis while they run has a thread of its own.
      #
      # It does what Sidekiq::Embedded does, but leaves nothing behind at its end, and works more than once per process.
      # It drives the launcher as a process with a heartbeat of its own may do, because Embedded never ends its
      # heartbeat thread.
      class Sidekiq
        # Seconds that processors may be missing before the runner reports it: Sidekiq itself replaces a processor that
        # a job has broken.
        SHORT = 10
        # Seconds that idle processors have to return from their last query of the queues (BasicFetch: 2).
        IDLE_WITHIN = 4
        # Seconds that a killed thread has to end.
        END_WITHIN = 2
        # Seconds to try to report the outcome of the jobs to a Redis that is down. After that the next run reports it.
        PATIENCE = 3

        class << self
          # @return [Integer] the largest concurrency of any kind in this mold
          attr_reader :widest

          # In a mold of a cold boot: Redis is not queried.
          def load(kind)
            require_sidekiq
            integrate_rails if RequiredFiles.of(kind).any? { |file| file.end_with?(RequiredFiles::RAILS) }
            RequiredFiles.load(kind)
            disconnect
            @widest = [@widest, kind.concurrency].compact.max
          end

          # Closes the jobs' connections, as far as Pando knows them.
          def disconnect = (RailsApp.disconnect if defined?(::ActiveRecord::Base))

          # @return [ConnectionNeed]
          def connections(kind) = ConnectionNeed.new(nil, *[kind.concurrency] * 3)

          private

          def require_sidekiq
            Runners.require_gem("sidekiq", "sidekiq")
            require "sidekiq/launcher"
            require "sidekiq/metrics/tracking"
            require "pando/swarm/runners/sidekiq/heartbeat"
            require "pando/swarm/runners/sidekiq/reliable_enqueuer"
            require "pando/swarm/runners/sidekiq/reliable_fetch"
            include ::Sidekiq::Component
          end

          # Sidekiq is loaded before Rails, so it takes part in the app's start only if it is told to.
          def integrate_rails
            require "sidekiq/rails"
          rescue LoadError => e
            raise unless e.path == "rails"
          end
        end

        def initialize(node)
          @node = node
          @counter = JobCounter.new
          @watch = BrokerWatch.new(node)
        end

        # @raise [StandardError] Redis is down and has never been reached; or a startup hook of the user raised
        def start
          @config = Settings.prepare(@node.concurrency, queues, self.class.widest)
          Settings.reach_redis
          JobCounter.current = @counter
          @held_jobs = HeldJobs.current = (new_held_jobs if @node.options.fetch(:reliable, true) && Settings.reliable?)
          fire_event(:startup, reverse: false, reraise: true)
          @launcher = ::Sidekiq::Launcher.new(@config, embedded: true)
          @launcher.poller = Scheduler.new(@config)
          without_debugging { @launcher.run(async_beat: false) }
          @heartbeat = Heartbeat.new(@config, @launcher, @held_jobs, @watch)
        end

        # Sidekiq waits for its scheduler here, which may wait for Redis.
        def quiet
          @quieting ||= Thread.new { quiet_launcher }
          nil
        end

        # Interrupts jobs that still run, and gives them back.
        def stop
          quiet
          @quieting.join
          @heartbeat.stop
          wait_for_idle_processors
          forget_dead_processors
          interrupt_processors if @held_jobs
          release if processors.zero? # first of all, because time may be short
          stop_launcher
          end_threads
          release
          HeldJobs.current = JobCounter.current = nil
          Settings.close_connections
          self.class.disconnect
        end

        # After `quiet`, the runner is busy as long as a processor is left: one that has queried Redis may still return
        # with a job.
        def busy? = (@quieting ? processors : in_progress).positive?
        def progress = @counter.progress
        def done = @counter.done
        def failed = @counter.failed
        def in_progress = ::Sidekiq::Processor::WORK_STATE.size
        def lag = @heartbeat&.lag
        def latency = @heartbeat&.latency

        # @return [String, nil] why it cannot go on
        def healthy? = (trouble unless @quieting)

        private

        # In the form of Sidekiq's own configuration: "critical,3".
        def queues
          weights = @node.options[:weights]&.transform_keys(&:to_s)
          weights ? @node.queues.map { |name| "#{name},#{weights.fetch(name, 1)}" } : @node.queues
        end

        def trouble
          return "Sidekiq's heartbeat has ended" unless @heartbeat.alive?

          missing = missing_processors
          @short_since = missing.zero? ? nil : @short_since || Sys.now
          "#{missing} of Sidekiq's processors have ended" if @short_since && Sys.now - @short_since > SHORT
        end

        # A launcher that has been quieted once is not quieted again, even if that went wrong.
        def quiet_launcher
          @launcher.quiet
        rescue StandardError => e
          handle_exception(e, { context: "its scheduler had ended" })
          fire_event(:quiet, reverse: true)
        end

        # @return [Integer] threads that run jobs, or wait for one; a job may have killed its thread
        def processors
          @launcher.managers.sum do |manager|
            manager.workers.to_a.count { |one| one.thread.nil? || one.thread.alive? }
          end
        end

        def missing_processors
          @launcher.managers.sum do |manager|
            alive = manager.workers.to_a.count { |processor| processor.thread&.alive? }
            [manager.capsule.concurrency - alive, 0].max
          end
        end

        def new_held_jobs
          HeldJobs.new(@config, identity).tap do |held_jobs|
            held_jobs.suspects = SuspectJobs.new(@config, held_jobs, Recovery.new(@config, held_jobs, @node.kind))
          end
        end

        def release
          return unless @held_jobs

          UnreportedRuns.add(@held_jobs) unless @held_jobs.release(PATIENCE)
          @held_jobs = nil
        end

        # Does at once what Sidekiq would do after some pauses. The jobs are held, and go back when the processors are
        # gone.
        def interrupt_processors
          @launcher.managers.each { |manager| manager.workers.to_a.each(&:kill) }
          deadline = Sys.now + END_WITHIN
          sleep(0.01) until processors.zero? || Sys.now > deadline
        end

        # A processor that is interrupted while Redis answers loses the answer, which is a job.
        def wait_for_idle_processors
          deadline = Sys.now + IDLE_WITHIN
          sleep(0.01) until Sys.now > deadline || processors <= in_progress
        end

        # Otherwise Sidekiq would wait for them for some seconds.
        def forget_dead_processors
          @launcher.managers.each { |manager| manager.workers.delete_if { |one| one.thread && !one.thread.alive? } }
        end

        # A manager of Sidekiq's would first pause for half a second, even if it has no processor left.
        def stop_launcher
          ended, @launcher.managers = @launcher.managers.partition { |manager| manager.workers.empty? }
          @launcher.stop
          ended.each { |manager| manager.capsule.stop }
        end

        def end_threads
          threads = Thread.list.select { |thread| thread.name&.start_with?("sidekiq.") }
          threads.each { |thread| thread.join(END_WITHIN) || thread.kill.join(END_WITHIN) }
        end

        # At debug level, Launcher#run logs the configuration in a way that fails when it is frozen, that is from the
        # second run on.
        def without_debugging
          level = logger.level
          logger.level = ::Logger::INFO if logger.debug?
          yield
        ensure
          logger.level = level
        end

        # Counts jobs and failures, as the outermost of Sidekiq's server middlewares, and as one of its error handlers:
        # some jobs fail before any middleware sees them (the class is missing, the job is not JSON).
        #
        # One per run of a runner. Sidekiq's threads write; the main thread reads.
        class JobCounter
          # Sidekiq makes a new one for each job. Its configuration outlives runs and forks, so the middleware looks up
          # the current JobCounter. A job that another one performs (`perform_inline`) is a part of that one.
          class Middleware
            PERFORMS = :pando_performs_job
            private_constant :PERFORMS

            def call(_job, _payload, _queue, &perform)
              thread = Thread.current
              return perform_inner(&perform) if thread.thread_variable_get(PERFORMS)

              begin
                thread.thread_variable_set(PERFORMS, true)
                count(&perform)
              ensure
                thread.thread_variable_set(PERFORMS, nil)
              end
            end

            private

            def perform_inner
              yield
            ensure
              JobCounter.current&.inner_job_ended
            end

            def count
              yield
              JobCounter.current&.job_done
            rescue ::Sidekiq::JobRetry::Skip
              JobCounter.current&.job_done # the job ended early, and has done the rest itself
              raise
            end
          end

          ERROR_HANDLER = lambda do |_error, context, _config|
            JobCounter.current&.job_failed if context[:job] || context[:jobstr]
          end

          class << self
            attr_accessor :current
          end

          # @return [Integer] jobs that have ended, and how many of them have failed
          attr_reader :done, :failed

          def initialize
            @done = @failed = @inner = 0
            @lock = Mutex.new
          end

          # @return [Integer] grows with each job that ends, also within another one
          def progress = @done + @inner

          def inner_job_ended = @lock.synchronize { @inner += 1 }

          def job_done = @lock.synchronize { @done += 1 }

          def job_failed
            @lock.synchronize do
              @done += 1
              @failed += 1
            end
          end
        end

        # Sidekiq's configuration. A process and its children have one. It is made at the first start, by the blocks of
        # Sidekiq.configure_server, and frozen by Sidekiq from then on. Before each run, this module renews what the run
        # needs.
        module Settings
          class << self
            # Runs in a node, before it starts.
            def prepare(concurrency, queues, pool)
              @config ||= configure
              # A pool never changes its size: it is as large as the mold's kind with the highest concurrency needs it.
              @config.concurrency = pool || concurrency
              @config.default_capsule.redis_pool # makes it, in that size
              @config.concurrency = concurrency
              @config.queues = queues unless queues.empty?
              # Sidekiq removes the blocks that it has called.
              @config[:lifecycle_events].each { |event, blocks| blocks.replace(@events.fetch(event, [])) }
              forget_last_run
              @config
            end

            # Whether we fetch, and not Sidekiq Pro or a fetch class that the app has chosen.
            def reliable? = @config[:fetch_class] == ReliableFetch

            # So a wrong URL shows when the cluster boots. A process that has reached Redis once, or was forked from one
            # that has, waits for a Redis that is down.
            def reach_redis
              @config.redis { |connection| connection.call("PING") } unless @reached
              @reached = true
            end

            # The pools stay, and connect again on their next use.
            def close_connections
              [@config, *@config.capsules.each_value].each { |one| one.redis_pool.reload(&:close) }
            end

            private

            def configure
              config = nil
              ::Sidekiq.configure_embed { |made| config = made }
              config[:fetch_class] ||= ReliableFetch
              config[:scheduled_enq] ||= ReliableEnqueuer
              config[:timeout] = 0 # seconds; the node has waited already when it stops Sidekiq
              config.server_middleware { |chain| chain.prepend(JobCounter::Middleware) }
              config.error_handlers << JobCounter::ERROR_HANDLER
              @events = config[:lifecycle_events].transform_values(&:dup)
              config
            end

            # Each run has a name of its own in Redis. Sidekiq gives one name to a process and all its children (7.0 to
            # 8.1; these variables are not public).
            def forget_last_run
              names = %i[@@identity @@process_nonce] & ::Sidekiq::Component.class_variables
              names.each { |name| ::Sidekiq::Component.remove_class_variable(name) }
              Thread.current["sidekiq_tid"] = nil
              ::Sidekiq::Processor::WORK_STATE.clear
              reset_active_job
            end

            # Sidekiq's Active Job adapter notes that Sidekiq was quieted, and never that it has started again: jobs
            # that can be continued would then end at each of their steps.
            def reset_active_job
              return unless defined?(::ActiveJob::QueueAdapters::SidekiqAdapter)

              adapter = ::ActiveJob::QueueAdapters::SidekiqAdapter
              return unless adapter.class_variable_defined?(:@@stopping)

              adapter.class_variable_set(:@@stopping, false) # rubocop:disable Style/ClassVars -- it is Sidekiq's
            end
          end
        end
      end
    end
  end
end
