# frozen_string_literal: true

require "pando/swarm/broker_watch"
require "pando/swarm/first_word"
require "pando/swarm/runners/resque/worker"
require "pando/swarm/runners/resque/bell"
require "pando/swarm/runners/resque/child"

module Pando
  module Swarm
    module Runners
      class Resque
        # Takes jobs from Resque, one after the other, and has a {Child} run each. One thread does all of it: it takes
        # jobs, forks, waits, sends heartbeats and cleans up after killed nodes. When Redis is down it keeps what it has
        # and tries again, later each time. Owned by the runner, in a node.
        #
        # @api private
        class Desk
          TEND_EVERY = 5 # seconds
          # Seconds that its thread has to end, in addition to the child's time.
          END_WITHIN = 6

          # The thread was told to end while it waited for Redis.
          class BrokenOff < StandardError; end

          attr_reader :done, :failed, :lag

          # @param node [Node] @param interval [Float] seconds between two checks of empty queues
          # @param seconds [Numeric, nil] how long a job may take
          def initialize(node, interval, seconds)
            @watch = BrokerWatch.new(node)
            @title = "job of #{node}"
            @interval = interval
            @seconds = seconds
            @worker = Worker.new(*node.queues)
            @done = @failed = 0
            @quiet = @ended = @taking = @working = false
          end

          # Returns when it takes jobs, or when it is clear that Redis is down.
          def start
            @bell = Bell.new
            first = FirstWord.new
            @thread = Thread.new { work(first) }
            @thread.name = "resque desk"
            first.wait
          end

          def quiet
            @quiet = true
            @bell&.ring
          end

          def stop
            @ended = true
            quiet
            @thread&.join(END_WITHIN + @worker.term_timeout) || @thread&.kill&.join(END_WITHIN)
            ::Resque.redis.disconnect!
            @bell&.close
          end

          # After `quiet`, a job that is just being taken counts as well.
          def busy? = @working || (@quiet && @taking)
          def in_progress = @working ? 1 : 0
          def alive? = @quiet || !!@thread&.alive?

          private

          def work(first)
            insist(first) { register }
            first.say
            take until @quiet
            leave
          rescue BrokenOff
            nil
          rescue Exception => e # rubocop:disable Lint/RescueException
            raise if first.said?

            first.say(e)
          end

          def register
            bury_namesake
            @worker.heartbeat!
            @worker.prune_dead_workers
            @worker.run_hook(:before_first_fork)
            @worker.register_worker
            @tend_at = now + TEND_EVERY
            @prune_at = now
          end

          # A node that was killed with its container has the same name as this one, if the container was restarted.
          # This node would renew the dead one's heartbeat, and its job would be forgotten with the next one.
          def bury_namesake
            @worker.unregister_worker if ::Resque::Worker.exists?(@worker.to_s)
          end

          def leave
            @worker.unregister_worker
            @worker.run_hook(:worker_exit)
          rescue *Worker::AWAY
            nil # other nodes will notice that this one is gone
          end

          def take
            @taking = true
            job = insist { next_job }
            return do_job(job) if job

            @taking = false
            tend
            @bell.nap(@interval) unless @quiet
          ensure
            @taking = false
          end

          def next_job
            @worker.reserve unless @quiet || @worker.paused?
          end

          def do_job(job)
            @working = true
            job.worker = @worker
            insist { @worker.working_on(job) }
            @failed += 1 unless succeeds?(job)
            insist { @worker.done_working }
            @done += 1
          ensure
            @working = false
          end

          def succeeds?(job)
            @worker.run_hook(:before_fork, job)
            child = Child.new(@worker, job, @title, @seconds)
          rescue StandardError => e # the hook raised, or the kernel refuses another process
            @worker.report_failed_job(job, e)
            false
          else
            status = await(child)
            insist { job.fail(dirty_exit(status)) } if status.signaled?
            status.success?
          end

          def dirty_exit(status)
            ::Resque::DirtyExit.new("Child process received unhandled signal #{status}", status)
          end

          # @return [Process::Status]
          def await(child)
            tend until @bell.nap([child.press(@ended), TEND_EVERY].compact.min, child)
            child.reap
          end

          # Now and then: sends the heartbeat, cleans up after dead workers, counts the waiting jobs.
          def tend
            return if now < @tend_at

            @tend_at = now + TEND_EVERY
            @worker.heartbeat!
            found
            @worker.prune_dead_workers if now > @prune_at && !@quiet
            @lag = @worker.queues.sum { |queue| ::Resque.size(queue) }
          rescue *Worker::AWAY => e
            @lag = nil
            @watch.lost(e)
          end

          # Tries again and again while Redis is down.
          # @param first [FirstWord, nil] is told that this may take a while
          # @raise [BrokenOff]
          def insist(first = nil)
            result = yield
            found
            result
          rescue *Worker::AWAY => e
            pause = @watch.lost(e)
            first&.say
            @bell.nap(pause) unless @ended
            @ended ? raise(BrokenOff) : retry
          end

          # Other nodes could not send heartbeats while Redis was down, so they get time to do so.
          def found
            @prune_at = now + ::Resque.heartbeat_interval if @watch.found
          end

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
