# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # A thread of a node that talks to Redis for those that cannot wait: it sends Sidekiq's heartbeat, counts
        # waiting jobs, and reports what happened to held jobs.
        class Beat
          EVERY = 5 # seconds
          SOON = 1 # if something is still to be reported, or Redis is down
          HEARTBEAT = 10 # seconds, as in Sidekiq

          # @return [Integer, nil] jobs that wait in our queues
          attr_reader :lag

          # @param holdings [Holdings, nil] @param watch [BrokerWatch]
          def initialize(config, launcher, holdings, watch)
            @config = config
            @watch = watch
            @launcher = launcher
            @holdings = holdings
            @lock = Mutex.new
            @news = ConditionVariable.new
            @thread = Thread.new { run }
            @thread.name = "pando sidekiq heartbeat"
          end

          def alive? = @thread.alive?

          def stop
            @lock.synchronize do
              @over = true
              @news.signal
            end
            @thread.join
          end

          private

          def run
            due = Sys.now
            until @over
              if Sys.now >= due
                due = Sys.now + HEARTBEAT
                @launcher.heartbeat # it rescues all errors of Redis
              end
              revive_scheduler
              pause = look_around
              @lock.synchronize { @over || @news.wait(@lock, pause) }
            end
            announce_end
          end

          # Reported at the beginning of the end, in case the end is cut short.
          def announce_end
            @holdings&.ending
          rescue StandardError => e
            @config.logger.warn { "could not tell Redis that this run ends: #{e.message}" }
          end

          # No other thread here moves scheduled jobs that are due. The thread that ends this run meanwhile may have
          # talked to the former scheduler.
          def revive_scheduler
            return if @launcher.stopping? || !died?(@launcher.poller)

            @launcher.poller = Scheduler.new(@config)
            @launcher.poller.start
            @launcher.poller.terminate if @launcher.stopping?
          end

          # A scheduler of another class is not ours to restart.
          def died?(scheduler) = scheduler.is_a?(Scheduler) && scheduler.dead?

          # @return [Float] seconds until the next time
          def look_around
            FormerRuns.release
            @holdings&.tend
            @holdings&.trials&.tend
            @lag = waiting
            @watch.found
            @holdings&.unsettled? ? SOON : EVERY
          rescue StandardError => e
            @lag = nil
            [@watch.lost(e), SOON].min # jobs are fetched again as soon as Redis is back
          end

          def waiting
            queues = @config.capsules.each_value.flat_map(&:queues).uniq
            sizes = @config.redis { |redis| redis.pipelined { |all| queues.each { |name| all.llen("queue:#{name}") } } }
            sizes.sum
          end
        end
      end
    end
  end
end
