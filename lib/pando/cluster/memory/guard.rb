# frozen_string_literal: true

require "pando/cluster/memory/gauge"
require "pando/cluster/memory/shortage"

module Pando
  module Cluster
    module Memory
      # Replaces workers that take too much memory: between two requests when they pass the limit, during one at the
      # hard limit, and the largest of all when memory is short. Only private memory counts: what a worker shares with
      # its mold would not be freed. Owned by a Pool, in the monitor.
      class Guard
        include Brief
        include Wording

        # Seconds between two looks.
        TICK = 0.25
        # The same while the control group is nearly full.
        HASTE = 0.05
        # The most exact measurements at one look.
        MEASUREMENTS = 4

        def initialize(roster, options, rollout, generations, gauge, shortage)
          @roster = roster
          @options = options
          @rollout = rollout
          @generations = generations
          @gauge = gauge
          @shortage = shortage
          @shortage.join(self)
          @looked_at = 0.0
        end

        def reconcile(now = Sys.now)
          return unless limits.any? && now >= due

          @looked_at = now
          grown(living(@roster)).each { |worker| judge(worker) }
          pids = [Process.pid, *living(@roster.everybody).map(&:pid)] # without those that it has just killed
          @gauge.measure_next(pids) if limits.total
          @shortage.look(pids)&.then { |reason| relieve(reason, now) }
        end

        def short? = limits.any? && @shortage.short?

        def due = (@looked_at + (@shortage.near? ? HASTE : TICK) if limits.any?)

        # One worker leaves at a time, as long as the limits allow it: a cluster in which all are too large goes on
        # serving.
        # @return [Boolean] true until another worker serves in the place of the last one that was told to leave; but
        #   neither a long request nor the connections of that one are waited for
        def departing?
          return false unless @leaver
          return @rollout.awaited?(@leaver.slot) if @leaver.gone? || keeps_connections?(@leaver)

          @leaver.replacement_wanted? || !@leaver.engaged?
        end

        # @return [Boolean] whether the last worker that was told to leave is about to, for which other pools wait
        def seeing_off?
          !@leaver.nil? && @leaver.leaving? && !@leaver.engaged? && !keeps_connections?(@leaver)
        end

        private

        def limits = @options.memory

        def living(roster) = roster.select { |child| child.pidfd && !child.condemned? }

        # Workers that may have passed their limit since they were measured.
        def grown(processes)
          limited = processes.select { |child| child.worker? && limit_of(child) }
          limited.map { |worker| [worker, @gauge.most(worker.pid)] }
                 .select { |worker, most| most > limit_of(worker) }
                 .max_by(MEASUREMENTS) { |_, most| most }.map(&:first)
        end

        # One that leaves may still pass the hard limit.
        def limit_of(worker)
          return soft_limit if worker.ready?

          limits.hard if worker.leaving?
        end

        def judge(worker)
          return unless @gauge.turn_of?(self)

          size = @gauge.measure(worker.pid)&.private or return
          if limits.hard && size > limits.hard
            return kill(worker, over_hard_limit(size)) if worker.row.busy_since
            return replace(worker, over_hard_limit(size)) if keeps_connections?(worker)
          end

          outgrown(worker, size) if size > soft_limit && worker.ready?
        end

        def outgrown(worker, size)
          return if departing? && !over_hard?(worker)

          replace(worker, "its private memory is #{mebibytes(size)}, over the limit of #{mebibytes(soft_limit)}")
        end

        # Without a limit for workers it is the hard one: an idle worker beyond that is not killed in its next request.
        def soft_limit = limits.worker || limits.hard

        def over_hard_limit(size)
          "its private memory is #{mebibytes(size)}, over the hard limit of #{mebibytes(limits.hard)}"
        end

        # Its request is not tried again: it may have been the cause. The event names the one that pays.
        def kill(worker, reason)
          worker.blame
          Events.emit("request.killed", **worker.identity, **worker.job, reason: reason)
          worker.kill(reason, suspect: true)
        end

        # One that has left its place to another gives up its connections.
        def replace(worker, reason)
          @leaver = worker
          return @rollout.hurry(worker, reason) if worker.leaving?

          @generations.worker_leaves(worker, reason)
          @rollout.renew(worker, reason, cause: :memory)
        end

        # Whether it is so large that it does not wait for its turn.
        def over_hard?(worker)
          limits.worker && limits.hard && @gauge.last(worker.pid).private > limits.hard && !worker.replacement_wanted?
        end

        def relieve(reason, now)
          return unless @shortage.relief_due?(self, now)

          largest, size = largest_worker
          return unless largest && @roster.include?(largest) # the guard of its own pool replaces it

          @shortage.relieved(now)
          what = @gauge.obstacle ? "anonymous memory" : "private memory (#{mebibytes(size)})"
          replace(largest, "#{reason}, and of all workers it has most #{what}")
        end

        # @return [Array(Child, Integer), nil] nil: there is none, or no size is known
        def largest_worker
          workers = living(@roster.everybody).select { |child| child.worker? && relieving?(child) }
          # the largest ones by their estimated sizes are measured
          workers = workers.max_by(MEASUREMENTS) { |worker| @gauge.most(worker.pid) } unless @gauge.obstacle
          workers.filter_map { |worker| (size = size_of(worker)) && [worker, size] }.max_by(&:last)
        end

        # Whether it would free memory that is not about to be freed.
        def relieving?(worker) = keeps_connections?(worker) || (worker.ready? && !worker.replacement_wanted?)

        # Whether it leaves and keeps them, and its memory, maybe for hours.
        def keeps_connections?(worker) = worker.draining? && (worker.connections + worker.streams).positive?

        def size_of(worker)
          return @gauge.anonymous(worker.pid) if @gauge.obstacle

          @gauge.turn_of?(self) ? @gauge.measure(worker.pid)&.private : @gauge.most(worker.pid)
        end
      end
    end
  end
end
