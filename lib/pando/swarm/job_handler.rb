# frozen_string_literal: true

require "pando/events"
require "pando/swarm"
require "pando/swarm/checked_runner"
require "pando/sys"

module Pando
  module Swarm
    # What a job node does, in the form that Cluster::Worker expects. A runner's threads run the jobs. The main thread
    # checks their progress now and then, and brings them to rest before a fork or the end of the process.
    #
    # Made in the mold, started in each node. Everything here runs on the node's main thread.
    #
    # @api private
    class JobHandler
      # Seconds between two checks whether the last jobs have ended.
      CHECK_EVERY = 0.02
      # Seconds between two looks whether garbage is to be collected, while jobs run.
      COLLECT_EVERY = 0.05
      # Frames of each thread's stack trace.
      FRAMES = 50

      # @param make [#call] makes a runner for a Node
      # @param grace [Float] seconds from the report that jobs make no progress to the node's end
      # @param collector [Refork::Collector]
      def initialize(kind, make, grace, collector)
        @kind = kind
        @make = make
        @grace = grace
        @collector = collector
      end

      # Runs in the new node, before it reports ready.
      def start(worker)
        @worker = worker
        @node = Node.new(@kind, worker.slot, finish_within: worker.finish_within)
        set_traps
        start_runner
        @collector.start(worker)
      end

      # @return [Array] nothing to watch: the runner fetches its jobs itself
      def sources = []

      def ready(_source); end
      def step_back; end
      def serve_out(_listener, _deadline); end
      def resume; end
      def failure = nil

      # A node has no job with which it could test itself.
      def try_out = ""

      # At each tick of the worker's loop.
      def idle
        return unless @runner

        @progress.update
        restart_runner if @restart && !@runner.busy?
        trouble = @runner&.trouble # a quiet node has no other one
        @worker.leave(trouble) if trouble
      end

      # Jobs overlap, so that there is no moment between them. Garbage is collected while they run, and only if major
      # collections are deferred: without that, there is nothing to be gained.
      def pulse
        quiet if @told_to_quiet
        return unless @runner && @collector.deferred? && @progress.recent?

        @collector.between { false }
        COLLECT_EVERY
      end

      # The node takes no new jobs from now on. Unless it is forked, this is final: the node is about to end.
      def quiet
        @told_to_quiet = true
        quiet_runner
      end

      # Whether the runner is completely gone, so that the process can be forked. The worker asks again and again until
      # then.
      def rest?
        return true unless @runner

        quiet_runner
        @progress.update
        return false if @runner.busy?

        stop_runner
        true
      end

      # @return [Float] seconds that jobs get to finish before a fork
      def patience = @kind.quiet_timeout

      # In a forked child: nothing here is its own.
      def abandon = nil

      # The process has been forked, or will not be: it goes on as before. A runner that was told to be quiet lets its
      # jobs finish first, however long they take. They must not suffer from a fork that did not happen.
      def go_on
        return restart_runner unless @runner

        @restart = @quiet
      end

      # A node has no connections of clients, and is never told to leave last.
      def drained? = true

      # Running jobs finish, or go back to the broker.
      # @param _drain_until [Float, nil] for workers that serve requests; not used here
      # @param by [Float, nil] when the node should be gone; nil: no hurry
      def stop(_drain_until = nil, by = nil)
        return unless @runner

        by ||= Sys.now + patience
        quiet_runner
        wait while @runner.busy? && Sys.now < by
        stop_runner
      end

      private

      # A node that was told to take no new jobs needs no runner.
      def start_runner
        return if @told_to_quiet

        @runner = CheckedRunner.new(@make.call(@node), @kind)
        @quiet = @restart = false
        @progress = JobProgress.new(@worker, @runner, @kind.timeout, @grace)
        @runner.start
        @runner.verify
      end

      def restart_runner
        stop_runner if @runner
        start_runner
      rescue StandardError => e
        @worker.leave("its runner failed to restart: #{e.message} (#{e.class})")
      end

      def quiet_runner
        @runner&.quiet unless @quiet
        @quiet = true
        nil
      end

      def stop_runner
        @runner.stop
        @progress.finish
        @runner = nil
      end

      def wait
        sleep(CHECK_EVERY)
        @worker.row.beat
        @progress.update
      end

      # The handlers do only what is allowed in one, or set a flag.
      def set_traps
        trap("TTIN") { write_stacks }
        trap("URG") { write_stacks(reason_for_stacks) }
        trap("TSTP") { @told_to_quiet = true }
      end

      # Why the monitor asks for stack traces. Runs in a signal handler.
      def reason_for_stacks
        @runner&.late_call || (@progress&.working? ? "its jobs make no progress" : "its main thread hangs")
      end

      # Writes all threads' stack traces to stderr. Runs in a signal handler, so it takes no lock and uses no logger.
      def write_stacks(reason = nil)
        head = "pid #{Process.pid}#{": #{reason}" if reason}"
        $stderr.write(Thread.list.map { |thread| "#{head}: #{stack_of(thread)}" }.join)
      rescue SystemCallError, IOError
        nil # stderr is closed
      end

      def stack_of(thread)
        name = thread.name || (thread == Thread.main ? "main thread" : "a thread without a name")
        frames = Array(thread.backtrace).first(FRAMES).map { |frame| "    #{frame}\n" }
        "#{name}, #{thread.status}\n#{frames.join}"
      end
    end

    # Tells a working node from one that hangs, by the progress of its jobs and not by a thread that is merely alive. If
    # jobs run and make no progress for `timeout` seconds, the node hangs. The monitor reads this deadline from the
    # node's row and enforces it, whatever state this process is in.
    #
    # Owned by the JobHandler, on the node's main thread.
    #
    # @api private
    class JobProgress
      # @param timeout [Float, nil] seconds @param grace [Float] seconds between the warning and the kill
      def initialize(worker, runner, timeout, grace)
        @worker = worker
        @runner = runner
        @timeout = timeout
        @grace = grace
        @done = @failed = 0
        @working = false
        worker.jobs_finished(0, 0)
      end

      def working? = @working

      # Whether jobs run, or have ended lately.
      def recent? = @working || @ended

      def update
        @ended = count.positive?
        progress = @runner.progress
        busy = @runner.busy?
        publish_load
        return clear_deadline unless busy

        restart_deadline unless @working && progress == @progress && Swarm.advances == @advances
        @progress = progress
        @advances = Swarm.advances
      end

      # The runner has ended.
      def finish
        count
        @worker.row.set_load(0, nil, nil)
        clear_deadline
      end

      private

      # @return [Integer] jobs that have ended since the last count
      def count
        done = @runner.done
        failed = @runner.failed
        ended = [done - @done, 0].max
        @worker.jobs_finished(ended, [failed - @failed, 0].max)
        @done = done
        @failed = failed
        ended
      end

      def publish_load
        @running = @runner.in_progress
        @worker.row.set_load(@running, @runner.lag, @runner.latency)
      end

      def restart_deadline
        @worker.job_started("jobs", "#{@running} running", @timeout, @timeout && (@timeout + @grace))
        @working = true
      end

      def clear_deadline
        @worker.jobs_rest if @working
        @working = false
      end
    end
  end
end
