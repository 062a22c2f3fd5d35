# frozen_string_literal: true

require "pando/events"

module Pando
  module Cluster
    # What is to be said when a process has ended: whether it was wanted, what
    # it was doing, and why.
    #
    # @api private
    class ExitReport
      # Seconds of life within which one that ends without having begun anything has failed.
      YOUNG = 60.0

      attr_reader :child, :ending, :reason

      # @param ending [Sys::Ending, nil] nil when there never was a process
      # @param oom [Boolean] the kernel has killed it for want of memory
      def initialize(child, ending, oom: false)
        @child = child
        @ending = ending
        @oom = oom
        @was_starting = child.starting?
        @at_work = child.worker? && !child.row.busy_since.nil?
        @wanted = ((child.leaving? || child.replacement_wanted?) && ending&.success?) || called_off?
        @reason = [child.failure || child.reason, child.verdict, (ending&.to_s unless @wanted)].compact.uniq.join(": ")
      end

      # It never became ready.
      def stillborn? = @was_starting

      # It brought this upon itself before it had begun any request: who dies
      # of a request says nothing about its mold.
      def failed?
        return true if stillborn?
        return false if wanted? || killed_from_outside?

        child.row.job.zero? && Sys.now - (child.row.started_at || 0) < YOUNG
      end

      # By the kernel's OOM killer, by an operator, or by ourselves at a deadline.
      def killed_from_outside? = ending&.killed? && ending.number == Signal.list["KILL"]

      # It served, and died of something that is no doing of ours.
      def accident? = !stillborn? && !wanted? && !child.condemned?

      # What it was doing is likely to have ended it, and not its place; want of memory may be anybody's doing.
      def at_work? = @at_work && !@oom

      # It left as it was asked to, or was ended before it was ready.
      def wanted? = @wanted

      # @param more [Hash{Symbol => Object}] what else is to be said
      def tell(more = {})
        return if child.service? && !stillborn? # the service supervisor tells

        Events.emit(event, **child.identity, reason: reason, **of_worker, **more, **(@oom ? { cause: :oom } : {}))
      end

      # Its self-check has failed, if that is what it was at.
      def tell_check
        return unless child.failed_check?

        Events.emit("check.failed", role: child.role, **child.identity, step: child.step, reason: reason,
                                    backtrace: child.stack)
      end

      private

      # A node that was stuck in its self-check may have begun jobs: those who wait for them are to know.
      def called_off?
        return false if !stillborn? || child.unwanted.nil? || child.stuck?

        ending.nil? || ending.success? || child.condemned?
      end

      def of_worker
        return {} unless child.worker?

        return { backtrace: child.detail }.compact if stillborn?

        { requests: child.requests, **(wanted? ? {} : child.job) }
      end

      def event
        return "#{child.role}.failed" if stillborn? && !wanted?
        return "mold.#{child.reason}" if child.mold? && Generations::ENDS.include?(child.reason)
        return "#{child.role}.exited" if wanted?

        ending&.killed? && child.condemned? ? "#{child.role}.killed" : "#{child.role}.lost"
      end
    end
  end
end
