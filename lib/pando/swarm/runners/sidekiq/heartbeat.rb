# frozen_string_literal: true

require "sidekiq/scheduled"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # A thread of a node that talks to Redis for those that cannot wait: it sends Sidekiq's heartbeat, counts
        # waiting jobs, and reports what happened to held jobs.
        class Heartbeat
          EVERY = 5 # seconds
          SOON = 1 # if something is still to be reported, or Redis is down
          BEAT_EVERY = 10 # seconds, as in Sidekiq
          END_WITHIN = 3 # seconds that Redis has to answer at a stop
          KILLED_WITHIN = 0.5 # seconds for the thread to notice that it was killed

          # Of our queues.
          attr_reader :lag, :latency

          # @param held_jobs [HeldJobs, nil] @param watch [BrokerWatch]
          def initialize(config, launcher, held_jobs, watch)
            @config = config
            @watch = watch
            @launcher = launcher
            @held_jobs = held_jobs
            @lock = Mutex.new
            @wakeup = ConditionVariable.new
            @thread = Thread.new { run }
            @thread.name = "pando sidekiq heartbeat"
          end

          def alive? = @thread.alive?

          def stop
            @lock.synchronize do
              @over = true
              @wakeup.signal
            end
            @thread.join(END_WITHIN) || @thread.kill.join(KILLED_WITHIN)
          end

          private

          def run
            due = Sys.now
            until @over
              if Sys.now >= due
                due = Sys.now + BEAT_EVERY
                @launcher.heartbeat # it rescues all errors of Redis
              end
              restart_scheduler
              pause = maintain
              @lock.synchronize { @over || @wakeup.wait(@lock, pause) }
            end
            report_end
          end

          # Reported at the beginning of the end, in case the end is cut short.
          def report_end
            @held_jobs&.ending
          rescue StandardError => e
            @config.logger.warn { "could not tell Redis that this run ends: #{e.message}" }
          end

          # No other thread here moves scheduled jobs that are due. The thread that ends this run meanwhile may have
          # talked to the former scheduler. One of another class is not ours to restart.
          def restart_scheduler
            scheduler = @launcher.poller
            return if @launcher.stopping? || !scheduler.is_a?(Scheduler) || !scheduler.dead?

            @launcher.poller = Scheduler.new(@config)
            @launcher.poller.start
            @launcher.poller.terminate if @launcher.stopping?
          end

          # @return [Float] seconds until the next time
          def maintain
            UnreportedRuns.release
            @held_jobs&.maintain
            @held_jobs&.suspects&.update
            look_at_queues
            @watch.found
            @held_jobs&.unsettled? ? SOON : EVERY
          rescue StandardError => e
            @lag = @latency = nil
            [@watch.lost(e), SOON].min # jobs are fetched again as soon as Redis is back
          end

          # A job joins its queue on the left, and is fetched from the right.
          def look_at_queues
            names = @config.capsules.each_value.flat_map(&:queues).uniq.map { |name| "queue:#{name}" }
            answers = @config.redis do |redis|
              redis.pipelined { |all| names.each { |name| [all.llen(name), all.lindex(name, -1)] } }
            end
            sizes, oldest = answers.partition.with_index { |_, at| at.even? }
            @lag = sizes.sum
            @latency = oldest.compact.filter_map { |job| waited(job) }.max || 0.0
          end

          # Sidekiq 8 writes milliseconds, Sidekiq 7 seconds as a Float.
          # @param job [String] anybody may have written it
          def waited(job)
            at = ::Sidekiq.load_json(job).fetch("enqueued_at")
            at /= 1000.0 if at.is_a?(Integer)
            [::Process.clock_gettime(::Process::CLOCK_REALTIME) - at, 0.0].max
          rescue StandardError
            nil
          end
        end

        # Sidekiq's own scheduler, which can also tell whether its thread has died. The thread dies if Redis is down
        # when it looks for dead processes, some seconds after its start (7.0 to 8.1). Thread names cannot tell that: a
        # new thread has none yet, and other libraries' pollers have the same.
        #
        # One at a time in a run. The runner and the Heartbeat make it.
        class Scheduler < ::Sidekiq::Scheduled::Poller
          def start = @running = super

          def dead? = !@running.nil? && !@running.alive?
        end
      end
    end
  end
end
