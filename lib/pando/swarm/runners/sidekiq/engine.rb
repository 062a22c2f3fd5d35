# frozen_string_literal: true

require "sidekiq"
require "sidekiq/launcher"
require "sidekiq/metrics/tracking"
require "pando/sys"
require "pando/swarm/runners/sidekiq/heartbeat"
require "pando/swarm/runners/sidekiq/job_counter"
require "pando/swarm/runners/sidekiq/reliable_fetch"
require "pando/swarm/runners/sidekiq/settings"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # One run of Sidekiq in this process. It does what Sidekiq::Embedded does, but leaves nothing behind at its end,
        # and works more than once per process. It drives the launcher as a process with a heartbeat of its own may do,
        # because Embedded never ends its heartbeat thread.
        #
        # Owned by the runner, and used on the node's main thread.
        class Engine
          include ::Sidekiq::Component

          # Seconds that idle processors have to return from their last query of the queues (BasicFetch: 2).
          IDLE_WITHIN = 4
          # Seconds that a killed thread has to end.
          END_WITHIN = 2
          # Seconds to try to report the outcome of the jobs to a Redis that is down. After that the next run reports
          # it.
          PATIENCE = 3

          # @param counter [JobCounter] @param watch [BrokerWatch]
          def initialize(counter, watch)
            @counter = counter
            @watch = watch
          end

          # @return [Integer, nil] jobs that wait in our queues, some seconds old
          def lag = @heartbeat&.lag

          # @return [Integer] jobs that run now
          def in_progress = ::Sidekiq::Processor::WORK_STATE.size

          # @return [Integer] threads that run jobs, or wait for one; a job may have killed its thread
          def processors
            @launcher.managers.sum do |manager|
              manager.workers.to_a.count { |one| one.thread.nil? || one.thread.alive? }
            end
          end

          def heartbeat_alive? = @heartbeat.alive?

          # @param kind [String] the name of the node's kind
          # @param pool [Integer] connections that the processors may need
          # @raise [StandardError] Redis is down and has never been reached; or a startup hook of the user raised
          def start(kind:, concurrency:, queues:, pool:, reliable:)
            @config = Settings.prepare(concurrency, queues, pool)
            Settings.reach_redis
            JobCounter.current = @counter
            @held_jobs = HeldJobs.current = (hold(kind) if reliable && Settings.reliable?)
            fire_event(:startup, reverse: false, reraise: true)
            @launcher = ::Sidekiq::Launcher.new(@config, embedded: true)
            @launcher.poller = Scheduler.new(@config)
            without_debugging { @launcher.run(async_beat: false) }
            @heartbeat = Heartbeat.new(@config, @launcher, @held_jobs, @watch)
          end

          # A launcher that has been quieted once is not quieted again, even if that went wrong.
          def quiet
            @launcher.quiet
          rescue StandardError => e
            handle_exception(e, { context: "its scheduler had ended" })
            fire_event(:quiet, reverse: true)
          end

          # The number of processors that are missing.
          def missing_processors
            @launcher.managers.sum do |manager|
              alive = manager.workers.to_a.count { |processor| processor.thread&.alive? }
              [manager.capsule.concurrency - alive, 0].max
            end
          end

          # Interrupts jobs that still run, and gives them back.
          def stop
            @heartbeat.stop
            wait_for_idle_processors
            forget_dead_processors
            interrupt_processors if @held_jobs
            release if processors.zero? # first of all, because time may be short
            @launcher.stop
            end_threads
            release
            HeldJobs.current = JobCounter.current = nil
            Settings.close_connections
          end

          private

          # @return [HeldJobs]
          def hold(kind)
            HeldJobs.new(@config, identity).tap do |held_jobs|
              held_jobs.suspects = SuspectJobs.new(@config, held_jobs, Recovery.new(@config, held_jobs, kind))
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
        end
      end
    end
  end
end
