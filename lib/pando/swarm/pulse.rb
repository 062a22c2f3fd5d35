# frozen_string_literal: true

module Pando
  module Swarm
    # Tells a working node from one that hangs, by the progress of its jobs and not by a thread that is merely alive. If
    # jobs run and make no progress for `timeout` seconds, the node hangs. The monitor reads this deadline from the
    # node's row and enforces it, whatever state this process is in.
    #
    # Owned by Work, on the node's main thread.
    #
    # @api private
    class Pulse
      # @param worker [Cluster::Worker]
      # @param runner [CheckedRunner]
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

      def take
        count
        progress = @runner.progress
        busy = @runner.busy?
        tell
        return rest unless busy

        work unless @working && progress == @progress && Swarm.advances == @advances
        @progress = progress
        @advances = Swarm.advances
      end

      # The runner has ended.
      def finish
        count
        @worker.row.set_load(0, nil)
        rest
      end

      private

      def count
        done = @runner.done
        failed = @runner.failed
        @worker.jobs_finished([done - @done, 0].max, [failed - @failed, 0].max)
        @done = done
        @failed = failed
      end

      def tell
        @running = @runner.in_progress
        @worker.row.set_load(@running, @runner.lag)
      end

      # Restarts the deadline.
      def work
        @worker.job_started("jobs", "#{@running} running", @timeout, @timeout && (@timeout + @grace))
        @working = true
      end

      def rest
        @worker.jobs_rest if @working
        @working = false
      end
    end
  end
end
