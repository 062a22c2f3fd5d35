# frozen_string_literal: true

require "sidekiq"
require "sidekiq/launcher"
require "sidekiq/metrics/tracking"
require "pando/sys"
require "pando/swarm/runners/sidekiq/meter"
require "pando/swarm/runners/sidekiq/reliable_fetch"
require "pando/swarm/runners/sidekiq/scheduler"
require "pando/swarm/runners/sidekiq/settings"
require "pando/swarm/runners/sidekiq/beat"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # One run of Sidekiq in this process: what Sidekiq::Embedded does, with an end that leaves nothing behind, and
        # more than once in a process. Its launcher is driven as Sidekiq offers to processes with a heartbeat of
        # their own, for Embedded never ends its heartbeat thread.
        #
        # Made and driven on the node's main thread.
        class Engine
          include ::Sidekiq::Component

          # Seconds that idle processors have to come back from their last look into the queues (BasicFetch: 2).
          LAST_LOOK = 4
          # Seconds that a thread has to end when it is killed.
          LAST_WORDS = 2
          # Seconds that a Redis which is away has to be told what became of the jobs; after that the next run tells it.
          PATIENCE = 3

          # @param meter [Meter] @param watch [BrokerWatch]
          def initialize(meter, watch)
            @meter = meter
            @watch = watch
          end

          # @return [Integer, nil] jobs that wait in our queues, as of some seconds ago
          def lag = @beat&.lag

          # @return [Integer] jobs that run
          def in_progress = ::Sidekiq::Processor::WORK_STATE.size

          # @return [Integer] its threads that do jobs, or wait for one; a job may have killed its own
          def processors
            @launcher.managers.sum do |manager|
              manager.workers.to_a.count do |one|
                one.thread.nil? || one.thread.alive?
              end
            end
          end

          def beating? = @beat.alive?

          # @param kind [String] the name of the node's kind
          # @param pool [Integer] connections that the processors may need
          # @raise [StandardError] Redis is not there, and has never been; a startup hook of the user's
          def start(kind:, concurrency:, queues:, pool:, reliable:)
            @config = Settings.prepare(concurrency, queues, pool)
            Settings.reach_redis
            Meter.current = @meter
            @holdings = Holdings.current = (hold(kind) if reliable && Settings.reliable?)
            fire_event(:startup, reverse: false, reraise: true)
            @launcher = ::Sidekiq::Launcher.new(@config, embedded: true)
            @launcher.poller = Scheduler.new(@config)
            without_debugging { @launcher.run(async_beat: false) }
            @beat = Beat.new(@config, @launcher, @holdings, @watch)
          end

          # Who has been quieted once is not quieted again, also where it went wrong.
          def quiet
            @launcher.quiet
          rescue StandardError => e
            handle_exception(e, { context: "its scheduler had ended" })
            fire_event(:quiet, reverse: true)
          end

          # Processors that should be there and are not.
          def missing_processors
            @launcher.managers.sum do |manager|
              alive = manager.workers.to_a.count { |processor| processor.thread&.alive? }
              [manager.capsule.concurrency - alive, 0].max
            end
          end

          # What still runs is interrupted, and its job given back.
          def stop
            @beat.stop
            wait_for_idle_processors
            forget_dead_processors
            interrupt_processors if @holdings
            release if processors.zero? # before anything else, for time may be short
            @launcher.stop
            end_threads
            release
            Holdings.current = Meter.current = nil
            Settings.close_connections
          end

          private

          # @return [Holdings]
          def hold(kind)
            Holdings.new(@config, identity).tap do |holdings|
              holdings.trials = Trials.new(@config, holdings, Recovery.new(@config, holdings, kind))
            end
          end

          def release
            return unless @holdings

            FormerRuns.add(@holdings) unless @holdings.release(PATIENCE)
            @holdings = nil
          end

          # As Sidekiq would after some pauses; their jobs are held, and go back when they are gone.
          def interrupt_processors
            @launcher.managers.each { |manager| manager.workers.to_a.each(&:kill) }
            deadline = Sys.now + LAST_WORDS
            sleep(0.01) until processors.zero? || Sys.now > deadline
          end

          # Whoever is interrupted while Redis answers him loses the answer, which is a job.
          def wait_for_idle_processors
            deadline = Sys.now + LAST_LOOK
            sleep(0.01) until Sys.now > deadline || processors <= in_progress
          end

          # Sidekiq would wait for them for some seconds.
          def forget_dead_processors
            @launcher.managers.each { |manager| manager.workers.delete_if { |one| one.thread && !one.thread.alive? } }
          end

          def end_threads
            threads = Thread.list.select { |thread| thread.name&.start_with?("sidekiq.") }
            threads.each { |thread| thread.join(LAST_WORDS) || thread.kill.join(LAST_WORDS) }
          end

          # Launcher#run writes down the configuration then, in a way that fails when it is frozen: at the second run.
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
