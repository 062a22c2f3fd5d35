# frozen_string_literal: true

require "pando/errors"
require "pando/events"
require "pando/swarm/runners"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      # Runs Resque's jobs, each in a process of its own: a node takes a job, forks a child for it, and waits for that
      # child.
      #
      #   node :resque, count: 4, queues: %w[critical default], require: "./jobs.rb"
      #
      # The child is forked from a node that was forked from a warm one, so they share memory; docs/swarm/resque.md.
      #
      # One thread of its own does everything, by Resque's public methods: it takes jobs, forks, waits, sends heartbeats
      # and cleans up after killed nodes. When Redis is down it keeps what it has and tries again, later each time.
      class Resque
        INTERVAL = 1.0 # seconds between two checks of empty queues
        # Seconds between two heartbeats, also while jobs run. Resque's heartbeat_interval counts if it is shorter.
        MAINTAIN_EVERY = 5
        # Seconds that its thread has to end, in addition to the child's time.
        END_WITHIN = 6

        # The thread was told to end while it waited for Redis.
        class Interrupted < StandardError; end

        # In the mold: loads the library and the jobs. Resque connects on its first use.
        def self.load(kind)
          Runners.require_gem("resque", "resque")
          require "pando/swarm/runners/resque/child"
          ::Resque.redis = kind.options[:redis] if kind.options[:redis]
          RequiredFiles.load(kind)
        end

        attr_reader :done, :failed, :lag

        # @param node [Node] its concurrency has no effect: a node runs one job at a time
        def initialize(node)
          @node = node
          @watch = BrokerWatch.new(node)
          @interval = node.options.fetch(:interval, INTERVAL)
          @job_timeout = node.options[:job_timeout]
          @worker = Worker.new(*node.queues)
          @done = @failed = @prune_at = 0
          @quiet = @ended = @taking = @working = false
        end

        # Returns when it takes jobs, or when it is clear that Redis is down.
        # @raise [StandardError] Redis is up, and refuses us
        def start
          @wakeup = Wakeup.new
          started = StartSignal.new
          @thread = Thread.new { run(started) }
          @thread.name = "resque jobs"
          started.wait
        rescue StandardError
          stop
          raise
        end

        def quiet
          @quiet = true
          @wakeup&.signal
        end

        # Tells the child that runs a job to end, and kills it if it does not. Its job fails.
        def stop
          @ended = true
          quiet
          @thread&.join(END_WITHIN + @worker.term_timeout) || @thread&.kill&.join(END_WITHIN)
          ::Resque.redis.disconnect!
          @wakeup&.close
        end

        # After `quiet`, a job that is just being taken counts as well.
        def busy? = @working || (@quiet && @taking)
        def in_progress = @working ? 1 : 0
        def progress = @done
        def healthy? = ("the thread that fetches jobs has died" unless @quiet || @thread&.alive?)

        private

        def run(started)
          retry_while_down(started) { announce }
          @worker.run_hook(:before_first_fork) # once; its errors are not those of Redis
          retry_while_down(started) { register }
          started.set
          take_job until @quiet
          unregister
        rescue Interrupted
          nil
        rescue Exception => e # rubocop:disable Lint/RescueException
          raise if started.set?

          started.set(e)
        end

        def announce
          replace_namesake if ::Resque::Worker.exists?(@worker.to_s)
          @worker.heartbeat!
          redis_found
          prune
        end

        # A node that was killed with its container has the same name as this one, if the container was restarted. This
        # node would renew the dead one's heartbeat, and its job would be forgotten with the next one. So it unregisters
        # the other node, but only once that one must be dead: it may run in another container with the same host name.
        def replace_namesake
          first = @worker.heartbeat
          while recent?(last = @worker.heartbeat)
            raise BootError, clash unless last == first

            @wakeup.wait(INTERVAL)
            raise Interrupted if @ended
          end
          @worker.unregister_worker
        end

        def recent?(heartbeat) = heartbeat && ::Resque.redis.server_time - heartbeat <= 2 * MAINTAIN_EVERY

        def clash
          "another node, which is alive, has the name #{@worker} in Resque's list. It has the same host name and " \
            "process id, so it must be in another container: give each container a host name of its own"
        end

        def register
          @worker.register_worker
          @maintain_at = Sys.now + rhythm
        end

        def rhythm = [MAINTAIN_EVERY, ::Resque.heartbeat_interval].min
        def rest = [@maintain_at - Sys.now, 0].max

        def unregister
          @worker.unregister_worker
        rescue *Worker::AWAY
          nil # other nodes will notice that this one is gone
        else
          run_last_hook
        end

        def run_last_hook
          @worker.run_hook(:worker_exit)
        rescue StandardError => e
          Events.emit("hook.failed", **here, hook: "worker_exit",
                                             reason: "#{e.message} (#{e.class}) at #{e.backtrace&.first}")
        end

        def here = { slot: @node.number, pid: Process.pid }

        # Without a pause between two jobs, too, the others must see that this node is alive.
        def take_job
          maintain
          @taking = true
          job = retry_while_down { @worker.reserve unless @quiet || @worker.paused? }
          return run_job(job) if job

          @taking = false
          @wakeup.wait([@interval, rest].min) unless @quiet
        ensure
          @taking = false
        end

        def run_job(job)
          @working = true
          job.worker = @worker
          retry_while_down { @worker.working_on(job) }
          @failed += 1 unless succeeds?(job)
          retry_while_down { @worker.done_working }
          @done += 1
        ensure
          @working = false
        end

        def succeeds?(job)
          @worker.run_hook(:before_fork, job)
          child = Child.new(@worker, job, @node, @job_timeout)
        rescue StandardError => e # the hook raised, or the kernel refuses another process
          @worker.report_failed_job(job, e)
          false
        else
          status = await(child)
          report_killed(job, status) if status.signaled?
          status.success?
        end

        # As Job#fail does. But an error of a hook is not one of Redis, and the failure is recorded once Redis is there.
        def report_killed(job, status)
          error = ::Resque::DirtyExit.new("Child process received unhandled signal #{status}", status)
          begin
            job.run_failure_hooks(error)
          rescue StandardError => e
            Events.emit("job.failed", **here, node: @node.kind, name: job.queue, location: e.backtrace&.first,
                                              reason: "#{e.message} (#{e.class})")
          end
          retry_while_down do
            ::Resque::Failure.create(payload: job.payload, exception: error, worker: @worker, queue: job.queue)
          end
        end

        def await(child)
          maintain until @wakeup.wait([child.enforce_timeout(@ended), rest].compact.min, child)
          child.reap
        end

        # Now and then: sends the heartbeat, cleans up after dead workers, counts the waiting jobs. No error of
        # Redis must end the job that runs.
        def maintain
          return if Sys.now < @maintain_at

          @maintain_at = Sys.now + rhythm
          renew
          redis_found
          prune unless @quiet
          @lag = @worker.queues.sum { |queue| ::Resque.size(queue) }
        rescue ::Redis::BaseError, *Worker::AWAY => e
          @lag = nil
          @watch.lost(e)
        end

        def prune
          @worker.prune_dead_workers if Sys.now > @prune_at
        end

        # Others take a node for dead that was stopped or cut off for long, and unregister it. It registers again, since
        # otherwise nobody misses it when it is killed.
        def renew
          @worker.heartbeat!
          @worker.register_worker unless ::Resque::Worker.exists?(@worker.to_s)
        end

        # Tries again and again while Redis is down.
        # @param started [StartSignal, nil] is set when Redis is down, because this may take a while
        def retry_while_down(started = nil)
          result = yield
          redis_found
          result
        rescue *Worker::AWAY => e
          pause = @watch.lost(e)
          started&.set
          @wakeup.wait(pause) unless @ended
          @ended ? raise(Interrupted) : retry
        end

        # Other nodes could not send heartbeats while Redis was down, so they get time to do so.
        def redis_found
          @prune_at = Sys.now + ::Resque.heartbeat_interval if @watch.found
        end

        # Lets a thread sleep until something is readable or another thread wakes it. Owned by the runner, in a node.
        class Wakeup
          def initialize
            @reader, @writer = IO.pipe
          end

          # Wakes the sleeping thread, or the next one that wants to sleep.
          def signal
            @writer.write_nonblock(".")
          rescue IOError, Errno::EAGAIN
            nil # a signal is pending already, or it is closed
          end

          # @param seconds [Numeric] at most
          # @return [#to_io, nil] an IO that is readable
          def wait(seconds, *ios)
            ready, = IO.select([@reader, *ios], nil, nil, seconds)
            return unless ready

            @reader.read_nonblock(64) if ready.delete(@reader)
            ready.first
          end

          def close = [@reader, @writer].each(&:close)
        end
      end
    end
  end
end
