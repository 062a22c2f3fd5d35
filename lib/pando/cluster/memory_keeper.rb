# frozen_string_literal: true

require "pando/cluster/memory_gauge"
require "pando/cluster/memory_limits"
require "pando/events"

module Pando
  module Cluster
    # Replaces workers that have grown too fat: between two requests when they pass the limit, in the
    # middle of one at the hard limit, and the fattest of all when the tree takes too much or memory is
    # short. By what is private to a worker: what it shares with its mold would not come back.
    #
    # Owned by the monitor.
    #
    # @api private
    class MemoryKeeper
      # Seconds between two looks.
      TICK = 0.25
      # Exact measurements in a look, beside the one in rotation.
      MEASUREMENTS = 4
      # Seconds that the departure of the fattest is given to show.
      RESPITE = 5.0

      # @param options [#memory] MemoryLimits, which a reload may change
      # @param rollout [#ask_to_leave]
      # @param wasted [#call] told of a worker that was too fat before it had served anybody
      def initialize(roster, options, rollout, wasted, gauge: MemoryGauge.new, pressure: Sys::Memory.method(:pressure))
        @roster = roster
        @options = options
        @rollout = rollout
        @wasted = wasted
        @gauge = gauge
        @pressure = pressure
        @looked_at = @relieved_at = 0.0
      end

      # Called at each turn of the monitor's loop.
      def reconcile(now = Sys.now)
        return unless limits.any? && now - @looked_at >= TICK

        @looked_at = now
        processes = @roster.select { |child| child.pidfd && !child.condemned? }
        @gauge.keep([Process.pid, *processes.map(&:pid)])
        grown(processes).each { |worker| judge(worker) }
        return unless limits.of_tree?

        measure_next(processes)
        relieve(now)
      end

      # @return [Float, nil]
      def due = (@looked_at + TICK if limits.any?)

      private

      def limits = @options.memory

      # Who may have passed a limit since it was measured. A worker that leaves may still be killed.
      def grown(processes)
        limit = soft_limit or return []
        processes.select { |child| child.worker? && (child.ready? || (limits.hard && child.leaving?)) }
                 .map { |worker| [worker, @gauge.most(worker.pid)] }.select { |_, most| most > limit }
                 .max_by(MEASUREMENTS) { |_, most| most }.map(&:first)
      end

      def judge(worker)
        size = @gauge.measure(worker.pid)&.private or return
        return kill(worker, size) if limits.hard && size > limits.hard && worker.row.busy_since
        return unless size > soft_limit && worker.ready?

        replace(worker, "its #{mebibytes(size)} of private memory are over the limit of #{mebibytes(soft_limit)}")
      end

      # Without one for workers the hard limit: who is idle beyond it goes, rather than be killed in his next request.
      def soft_limit = limits.worker || limits.hard

      # Its request is not tried again: it may have been the cause.
      def kill(worker, size)
        reason = "its #{mebibytes(size)} of private memory are over the hard limit of #{mebibytes(limits.hard)}"
        Events.emit("request.killed", **worker.identity, **worker.job, reason: reason)
        worker.kill(reason, suspect: true)
      end

      # One at a time, as long as the limit allows it: a cluster in which all are too fat goes on serving.
      def replace(worker, reason)
        return if @leaver && !@leaver.gone? && @leaver.leaving? && !over_hard?(worker)

        @leaver = worker
        @wasted.call(worker) if worker.row.job.zero?
        @rollout.ask_to_leave(worker, reason)
      end

      # And so far beyond the limit that it does not wait for its turn.
      def over_hard?(worker) = limits.worker && limits.hard && @gauge.last(worker.pid).private > limits.hard

      # Each in turn, the monitor as well.
      def measure_next(processes)
        pid = [Process.pid, *processes.map(&:pid)].min_by { |candidate| @gauge.measured_at(candidate) }
        @gauge.measure(pid)
      end

      def relieve(now)
        reason = too_much or return
        return if now - @relieved_at < RESPITE || @leaver&.leaving?

        sizes = @roster.ready_workers.to_h { |worker| [worker, @gauge.last(worker.pid)&.private] }
        return if sizes.empty? || sizes.value?(nil) # not all are known yet

        @relieved_at = now
        fattest, size = sizes.max_by(&:last)
        replace(fattest, "#{reason}, and of all workers it has most private memory (#{mebibytes(size)})")
      end

      def too_much
        total = @gauge.total
        return "all processes together take #{mebibytes(total)} of #{mebibytes(limits.total)}" if over_total?(total)

        waiting = limits.pressure && @pressure.call
        "memory is short (#{waiting}% of the time somebody waits for it)" if waiting && waiting > limits.pressure
      end

      def over_total?(total) = limits.total && total > limits.total

      def mebibytes(bytes) = format("%.1f MiB", bytes / 1_048_576.0)
    end
  end
end
