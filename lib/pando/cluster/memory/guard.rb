# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/memory/gauge"
require "pando/cluster/memory/limits"
require "pando/cluster/memory/relief"
require "pando/cluster/memory/shortage"
require "pando/events"
require "pando/mebibytes"

module Pando
  module Cluster
    module Memory
      # Replaces workers that have grown too fat: between two requests when they pass the limit, in the
      # middle of one at the hard limit, and the fattest of all when memory is short. By what is private to
      # a worker: what it shares with its mold would not come back.
      #
      # Owned by the monitor.
      #
      # @api private
      class Guard
        include Brief
        include Mebibytes

        # Seconds between two looks.
        TICK = 0.25
        # And when the control group is filling.
        HASTE = 0.05
        # Exact measurements in a look.
        MEASUREMENTS = 4

        # @param options [#memory] Limits, which a reload may change
        # @param rollout [#renew, #awaited?]
        # @param wasted [#call] told of a worker that was too fat before it had served anybody
        def initialize(roster, options, rollout, wasted, gauge: Gauge.new, shortage: nil, relief: nil)
          @roster = roster
          @options = options
          @rollout = rollout
          @wasted = wasted
          @gauge = gauge
          @shortage = shortage || Shortage.new(options, gauge)
          @relief = relief || Relief.new(@shortage)
          @relief.join(self)
          @looked_at = 0.0
        end

        # Called at each turn of the monitor's loop.
        def reconcile(now = Sys.now)
          return unless limits.any? && now >= due

          @looked_at = now
          pids = [Process.pid, *living(@roster.everybody).map(&:pid)]
          @gauge.keep(pids)
          grown(living(@roster)).each { |worker| judge(worker) }
          @gauge.measure_next(pids) if limits.total
          short = @shortage.look
          short ? relieve(short, now) : @relief.reset
        end

        # @return [Boolean] whether, at the last look, memory was short
        def short? = limits.any? && @shortage.short?

        # @return [Float, nil]
        def due = (@looked_at + (@shortage.near? ? HASTE : TICK) if limits.any?)

        # One goes at a time, as long as the limits allow it: a cluster in which all are too fat goes on serving.
        # @return [Boolean] until another one serves in the place of the last who was sent away; a long request of his
        #   is not waited for
        def departing?
          return false unless @leaver

          @leaver.gone? ? @rollout.awaited?(@leaver.slot) : @leaver.replacement_wanted? || !@leaver.engaged?
        end

        # @return [Boolean] whether the last who was sent away is about to go; his successor is no other pool's affair
        def seeing_off? = !@leaver.nil? && @leaver.leaving? && !@leaver.engaged?

        private

        def limits = @options.memory

        def living(roster) = roster.select { |child| child.pidfd && !child.condemned? }

        # Who may have passed a limit since it was measured. A worker that leaves may still be killed.
        def grown(processes)
          limit = soft_limit or return []
          processes.select { |child| child.worker? && (child.ready? || (limits.hard && child.leaving?)) }
                   .map { |worker| [worker, @gauge.most(worker.pid)] }.select { |_, most| most > limit }
                   .max_by(MEASUREMENTS) { |_, most| most }.map(&:first)
        end

        def judge(worker)
          return unless @gauge.rested?

          size = @gauge.measure(worker.pid)&.private or return
          return kill(worker, size) if limits.hard && size > limits.hard && worker.row.busy_since

          outgrown(worker, size) if size > soft_limit && worker.ready?
        end

        def outgrown(worker, size)
          return if departing? && !over_hard?(worker)

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

        def replace(worker, reason)
          @leaver = worker
          @wasted.call(worker, reason) if worker.row.job.zero?
          @rollout.renew(worker, reason, cause: :memory)
        end

        # And so far beyond the limit that it does not wait for its turn.
        def over_hard?(worker)
          limits.worker && limits.hard && @gauge.last(worker.pid).private > limits.hard && !worker.replacement_wanted?
        end

        def relieve(reason, now)
          return unless @relief.allowed?(self, now)

          fattest, size = fattest_worker
          return unless fattest && @roster.include?(fattest) # another pool's is its own guard's affair

          @relief.note(now)
          replace(fattest, "#{reason}, and of all workers it has most private memory (#{mebibytes(size)})")
        end

        # By what they may have grown since they were measured; then those are measured who may be it.
        # @return [Array(Child, Integer), nil]
        def fattest_worker
          @roster.everybody.ready_workers.reject(&:replacement_wanted?)
                 .max_by(MEASUREMENTS) { |worker| @gauge.most(worker.pid) }
                 .filter_map { |worker| (size = size_of(worker)) && [worker, size] }.max_by(&:last)
        end

        def size_of(worker) = @gauge.rested? ? @gauge.measure(worker.pid)&.private : @gauge.most(worker.pid)
      end
    end
  end
end
