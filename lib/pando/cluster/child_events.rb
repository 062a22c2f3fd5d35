# frozen_string_literal: true

require "pando/cluster/exit_report"
require "pando/cluster/tally"

module Pando
  module Cluster
    # Decides what follows from what happens to a child. Inbox, Reaper and Deadlines call it; it calls the pool's
    # generations, rollout and services. Owned by a Pool, in the monitor.
    class ChildEvents
      include Brief

      def initialize(pool, payload, oom)
        @oom = oom
        @pool = pool
        @payload = payload
        @options = payload.options
      end

      def child_adopted(child)
        return @pool.shutdown.end_starting_child(child) if stopping?
        return child.call_off("its generation was discarded") if @pool.generations.discarded?(child)

        @pool.generations.mold_adopted(child)
        # The mold's first deadline allowed for the running request of its source. A mold that was forked from another
        # pool's mold has to load its own part.
        child.deadline = Sys.now + (child.source.mold? ? @options.boot_timeout : @options.spawn_timeout) if child.mold?
      end

      def child_ready(child)
        return if child.condemned?

        @pool.shutdown.end_starting_child(child) if stopping?
        return end_unwanted(child) if child.unwanted || stopping?

        case child.role
        when :mold then mold_ready(child)
        when :worker then worker_ready(child)
        when :service then @pool.services.ready(child)
        when :reactor then @pool.reactors.ready(child)
        end
      end

      # A child that was forked and has not reported may wait for a lock that the fork or a library takes.
      def report_overdue(child)
        return unless @pool.inbox.adopt_unreported(child)

        child_checking(child, "fork") unless child.gone?
      end

      # @param step [String] empty: it has taken all steps
      def child_checking(child, step) = child.enter_step(step, @options.check_timeout&.then { |time| Sys.now + time })

      # The child has been at one step for too long. Another process finds out where it stands, which takes a while. The
      # child is killed only if it is still at that step then.
      def step_overdue(child)
        @pool.examiner.examine(child.pid) { |stack| child.kill_stuck(stack) if child.standing_still? }
      end

      def child_leaving(child, reason)
        return unless child.ready?

        @pool.generations.worker_leaves(child, reason)
        child.leave(reason, Sys.now + @options.stop_timeout)
        Events.emit("worker.leaving", **child.identity, reason: reason)
      end

      # The child crashes: it serves no more requests, and ends when Ruby has written its crash report.
      def child_crashing(child) = (@pool.rollout.worker_crashing(child) unless stopping?)

      def child_signalled(child, signal) = @pool.external_signals.add(child, signal)

      def thread_reported(child, kind, text)
        @pool.generations.lost_threads.report(child, kind, text) unless stopping? || !child.worker?
      end

      # The child was asked to fork a mold, and reports that requests have changed its process.
      def state_reported(child, text) = (@pool.generations.changed_state.report(child, text) unless stopping?)

      # The child asks to be replaced, and waits for an answer. The last ready worker first gets a successor.
      def child_wants_replacement(child, reason)
        return unless child.ready?

        if stopping?
          child_leaving(child, reason)
          return child.order(Message.new(:leave))
        end

        @pool.generations.worker_leaves(child, reason)
        @pool.rollout.renew(child, reason)
        child.order(Message.new(:stay)) if child.ready?
      end

      # @param text [String] what it requested, or why that failed
      def canary_tried(child, text, failed: false)
        @pool.generations.canary_tried(child, text, failed: failed) if child.ready?
      end

      # The forker lives, but the kernel or a hook refused the fork.
      # @param innocent [Boolean] the kernel refused, which is no fault of the generation
      def fork_failed(child, text, innocent:)
        child.reason = text
        if child.mold? && child.source.worker? && !innocent
          @pool.generations.promotion.refused(child, text)
        else
          Events.emit("fork.failed", role: child.role, **child.identity, reason: text)
        end
        child_lost(child, nil, innocent: innocent, told: true)
      end

      # The forker must not become a mold; another worker may.
      def fork_declined(child, text)
        @pool.generations.promotion.declined(child, text) || fork_failed(child, text, innocent: false)
      end

      # A process is gone, or an order will never become one.
      # @param innocent [Boolean] the kernel refused the process, or refused to let the monitor watch it
      # @param told [Boolean] an event has already given the reason
      def child_lost(child, ending, innocent: false, told: false)
        child.ending = ending
        oom = @oom.victim?(child)
        child.reason ||= "the kernel's OOM killer ended it" if oom
        refuse_connections_at_stop(child)
        @pool.poison.died(child, oom: oom)
        exit_report = ExitReport.new(child, ending, oom: oom)
        tell(child, exit_report) unless told
        judge(child, exit_report)
        hook(:after_worker_exit, child, ending) if child.worker? && ending
        @pool.services.lost(child, exit_report, refused: innocent) if child.service? && !stopping?
        @pool.dismiss(child)
        replace(child, exit_report, innocent)
      end

      # The order to fork was not carried out in time. A mold is stuck then; a worker may be in a long request.
      def spawn_overdue(child)
        return if child.mold? && @pool.generations.promotion.overdue(child)
        return child_lost(child, nil) if child.cut_off

        child.reason ||= "it was not forked in time"
        child.source.kill("it did not fork when it was told to") unless child.mold? || child.source.gone?
        child_lost(child, nil)
      end

      # Of the reactor.
      def lane_corrupt(_reactor, number) = @pool.reactors.lane_corrupt(number)

      def lines_lost(_child, number) = @pool.tally.add_lost_lines(number)

      # In direct mode a worker cuts off slow readers. Elsewhere the reactor emits this event (HTTP::ReactorReport).
      def reader_lost(child, text)
        reader, request = text.split("\n", 2)
        Events.emit("requests.lost", **child.identity, count: 1, reason: "write_timeout (1)", slowest: reader,
                                                       request: request)
      end

      # The child records no pages for `pando pages`, for this reason.
      def pages_failed(child, reason) = Events.emit("pages.failed", **child.identity, reason: reason)

      def request_slow(child, text) = @pool.slow_requests.answered(child, text)
      def slow_request_over(child, text) = @pool.slow_requests.over(child, text)

      def hard_timeout(child, number)
        return if child.condemned?

        child.blame(number)
        name, reason = @options.jobs ? ["node.stuck", "its jobs make no progress"] : ["request.killed", "hard timeout"]
        Events.emit(name, **child.identity, **child.job, reason: reason)
        child.kill(reason, overdue: true)
        hook(:after_worker_hard_timeout, child)
      end

      private

      def stopping? = @pool.shutdown.begun?

      def mold_ready(child)
        Events.emit("mold.ready", **child.identity)
        @pool.generations.mold_ready(child)
      end

      def worker_ready(child)
        Events.emit("worker.ready", **child.identity, **child.prefaulted)
        @pool.rollout.worker_ready(child)
      end

      # A child that became ready when it was no longer wanted. It may be serving by now.
      def end_unwanted(child)
        deadline = stopping? ? @pool.shutdown.deadline : Sys.now + @options.stop_timeout
        child.leave(child.unwanted, deadline, patient: !stopping?)
        Events.emit("worker.leaving", **child.identity, reason: child.unwanted) if child.worker?
      end

      def tell(child, exit_report)
        more = child.reactor? ? @pool.reactors.in_flight : {}
        # The backtrace of a failed first boot is printed when the server stops.
        boot_failed = child.mold? && exit_report.never_ready?
        more = { backtrace: child.detail }.compact if boot_failed && @pool.generations.proven?
        exit_report.tell(more)
        exit_report.report_failed_check unless stopping?
      end

      # The first worker that leaves has found the listeners' queues empty. A client that came later would wait for the
      # slowest worker, and then be reset. The reactor does this by itself.
      def refuse_connections_at_stop(child)
        @pool.listeners.refuse if stopping? && child.worker? && child.ending&.success?
      end

      # A worker that caused its own end says something about its mold.
      def judge(child, exit_report)
        return if stopping? || !child.worker? || exit_report.never_ready?

        @pool.generations.worker_gone(child, exit_report.reason, exit_report.fault)
      end

      # Only now is there room for a successor.
      def replace(child, exit_report, innocent)
        reason = exit_report.reason
        return @pool.reactors.lost(reason) if child.reactor?
        return if stopping?

        @payload.find_folder if child.mold?
        generations = @pool.generations
        if child.mold? then generations.mold_gone(child, reason, cause: cause(child, innocent))
        elsif child.unfit? then generations.child_unfit(child, reason)
        elsif child.service? then nil
        elsif exit_report.failed? then generations.worker_failed(child, reason, cause: cause(child, innocent))
        elsif exit_report.unexpected? then @pool.rollout.worker_lost(child, reason, working: exit_report.at_work?)
        end
      end

      # A node's runner takes jobs a moment before the node reports that it is ready, and a job may kill it.
      # @return [Symbol] see Generations#worker_failed
      def cause(child, innocent)
        return :refused if innocent
        return :passing if child.passing

        @options.jobs && child.ending&.killed? && !child.condemned? ? :job : :own
      end

      def hook(name, *arguments)
        @payload.run_hook(name, *arguments)
      rescue HookError => e
        Events.emit("hook.failed", hook: name, reason: e.message)
      end
    end
  end
end
