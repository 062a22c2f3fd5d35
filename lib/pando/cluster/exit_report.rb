# frozen_string_literal: true

module Pando
  module Cluster
    # Describes the end of a process: whether it was wanted, what the process was doing, and why it ended. Used by
    # ChildEvents, in the monitor, while the child's row is still its own.
    class ExitReport
      # A worker that ends within so many seconds, without having begun a request, has failed.
      YOUNG = 60.0

      attr_reader :child, :ending, :reason

      # @param ending [Sys::Ending, nil] nil: there never was a process
      def initialize(child, ending, oom: false)
        @child = child
        @ending = ending
        @oom = oom
        @never_ready = child.starting?
        @at_work = child.worker? && !child.row.busy_since.nil?
        @wanted = ((child.leaving? || child.replacement_wanted?) && ending&.success?) || called_off?
        @reason = [child.failure || child.reason, child.verdict, (ending&.to_s unless @wanted)].compact.uniq.join(": ")
        @failed = never_ready? || failed_young?
      end

      def never_ready? = @never_ready

      # Whether it left as it was asked to, or was called off before it was ready.
      def wanted? = @wanted

      # Whether it ended by itself before its first request. A death of a request says nothing about the mold.
      def failed? = @failed

      # Whether the OOM killer, an operator, or the monitor killed it.
      def killed_from_outside? = ending&.killed? && ending.number == Signal.list["KILL"]

      def unexpected? = !never_ready? && !wanted? && !child.condemned?

      # Whether its request has probably ended it. Any process may be the cause when memory runs out.
      def at_work? = @at_work && !@oom

      # What its end says about its mold.
      def fault
        return :none if wanted?

        by_hand = !child.condemned? || child.killed_by_operator?
        killed_from_outside? && by_hand && !@oom ? :elsewhere : :own
      end

      def tell(more = {})
        return if child.service? && !never_ready? # ServiceSupervisor emits its event

        Events.emit(event, **child.identity, reason: reason, **cause, **of_worker, **more)
      end

      def report_failed_check
        return unless child.failed_check?

        Events.emit("check.failed", role: child.role, **child.identity, step: child.step, reason: reason,
                                    backtrace: child.stack)
      end

      private

      # A node that was stuck in its self-check may have begun jobs, so its end must be reported.
      def called_off?
        never_ready? && child.unwanted && !child.stuck? && (ending.nil? || ending.success? || child.condemned?)
      end

      def failed_young?
        !wanted? && !killed_from_outside? && child.row.job.zero? && Sys.now - (child.row.started_at || 0) < YOUNG
      end

      # @return [Hash{Symbol => Symbol}] why the kernel or the monitor killed it; empty: neither did
      def cause
        return { cause: :oom } if @oom

        event.end_with?(".killed") ? { cause: Tally.cause_of(child.verdict) } : {}
      end

      def of_worker
        return {} unless child.worker?
        return { backtrace: child.detail }.compact if never_ready?

        { requests: child.requests, **(wanted? ? {} : child.job) }
      end

      def event
        return "#{child.role}.failed" if never_ready? && !wanted?
        return "mold.#{child.reason}" if mold_of_ended_generation?
        return "#{child.role}.exited" if wanted?

        ending&.killed? && child.condemned? ? "#{child.role}.killed" : "#{child.role}.lost"
      end

      # It is killed for that reason if it cannot be told to leave.
      def mold_of_ended_generation?
        return false unless child.mold? && Generations::ENDS.include?(child.reason)

        !ending&.killed? || child.verdict == child.reason
      end
    end
  end
end
