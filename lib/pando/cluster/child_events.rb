# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/exit_report"
require "pando/cluster/unreported_child"
require "pando/cluster/memory/oom_watch"

module Pando
  module Cluster
    # What follows from what happens to a child: told by Inbox, Reaper and
    # Deadlines, it tells generations, rollout and services.
    #
    # Owned by a Pool, in the monitor.
    #
    # @api private
    class ChildEvents
      include Brief

      # @param cluster [Pool]
      # @param oom [Memory::OomWatch]
      def initialize(cluster, payload, oom)
        @oom = oom
        @cluster = cluster
        @payload = payload
        @options = payload.options
      end

      def child_adopted(child)
        return @cluster.shutdown.end_late_comer(child) if stopping?
        return child.call_off("its generation was discarded") if @cluster.generations.discarded?(child)

        # A mold's deadline allowed for the request that its source was busy with. One that was forked from another
        # pool's has to load its own part.
        child.deadline = Sys.now + (child.source.mold? ? @options.boot_timeout : @options.spawn_timeout) if child.mold?
      end

      def child_ready(child)
        return if child.condemned?

        @cluster.shutdown.end_late_comer(child) if stopping?
        return see_off(child) if child.unwanted || stopping?

        case child.role
        when :mold then mold_ready(child)
        when :worker then worker_ready(child)
        when :service then @cluster.services.ready(child)
        when :reactor then @cluster.reactors.ready(child)
        end
      end

      # If it has been forked, it has not come as far as its first report: a lock that the fork itself
      # needs, or that a library takes right after it.
      def birth_overdue(child)
        pid = UnreportedChild.find(child.birthmark, @cluster.roster.everybody.filter_map(&:pid)) or return
        @cluster.inbox.adopt(child, pid)
        child.enter_step("fork", Sys.now) unless child.gone?
      end

      # It is about to take a step of its self-check.
      # @param step [String] empty: it has taken all
      def child_checking(child, step) = child.enter_step(step, @options.check_timeout&.then { |time| Sys.now + time })

      # It has been at one step for too long. Where it stands is found out by another process, and
      # takes a while; it is killed only if it has not gone on by then.
      def step_overdue(child)
        @cluster.examiner.examine(child.pid) { |stack| child.kill_stuck(stack) if child.standing_still? }
      end

      def child_leaving(child, reason)
        return unless child.ready?

        @cluster.generations.worker_wasted(child, reason) if child.row.job.zero?
        child.leave(reason, Sys.now + @options.stop_timeout)
        Events.emit("worker.leaving", **child.identity, reason: reason)
      end

      # It ends as soon as Ruby has written about it, and serves nobody meanwhile.
      def child_crashing(child) = (@cluster.rollout.worker_crashing(child) unless stopping?)

      # It got TERM from somebody outside, and serves until it is told more.
      def child_signalled(child, signal) = @cluster.external_signals.add(child, signal)

      # It has found out something about a thread.
      def thread_reported(child, kind, text)
        @cluster.generations.lost_threads.report(child, kind, text) unless stopping? || !child.worker?
      end

      # It was asked to fork a mold, and requests have changed its process.
      def state_reported(child, text) = (@cluster.generations.changed_state.report(child, text) unless stopping?)

      # It would like to be replaced, and waits for our word. The last one that serves is to serve on until then.
      def child_wants_replacement(child, reason)
        return unless child.ready?

        if stopping?
          child_leaving(child, reason)
          return child.order(Message.new(:leave))
        end

        @cluster.generations.worker_wasted(child, reason) if child.row.job.zero?
        @cluster.rollout.renew(child, reason)
        child.order(Message.new(:stay)) if child.ready?
      end

      # It was told to try itself out.
      # @param text [String] what it requested from itself, or why that failed
      def canary_tried(child, text, failed: false)
        @cluster.generations.canary_tried(child, text, failed: failed) if child.ready?
      end

      # Its forker lives, but the kernel or a hook refused.
      # @param innocent [Boolean] it was the kernel: no fault of the generation
      def fork_failed(child, text, innocent:)
        child.reason = text
        if child.mold? && child.source.worker? && !innocent
          @cluster.generations.promotion_refused(child, text)
        else
          Events.emit("fork.failed", role: child.role, **child.identity, reason: text)
        end
        child_lost(child, nil, innocent: innocent, told: true)
      end

      # Its forker must not become a mold; another worker may do.
      def fork_declined(child, text)
        @cluster.generations.promotion_declined(child, text) || fork_failed(child, text, innocent: false)
      end

      # A process is gone, or an order will never become one.
      # @param ending [Sys::Ending, nil]
      # @param innocent [Boolean] the kernel did not let it become a process that we can watch
      # @param told [Boolean] an event has said why it never became a process
      def child_lost(child, ending, innocent: false, told: false)
        child.ending = ending
        starved = @oom.victim?(child)
        child.reason ||= "the kernel's OOM killer ended it" if starved
        close_the_doors(child)
        @cluster.poison.died(child, oom: starved)
        exit_report = ExitReport.new(child, ending, oom: starved)
        tell(child, exit_report) unless told
        failed = exit_report.failed? # while its row is still its own
        take_stock(child, exit_report) unless exit_report.stillborn?
        hook(:after_worker_exit, child, ending) if child.worker? && ending
        @cluster.services.lost(child, exit_report, refused: innocent) if child.service? && !stopping?
        @cluster.dismiss(child)
        pass_on(child, exit_report, failed, innocent)
      end

      # An order that was not carried out in time. A mold that does not fork is
      # stuck; a worker may be in a long request, so only the order is dropped.
      def spawn_overdue(child)
        return if child.mold? && @cluster.generations.promotion_overdue(child)
        return child_lost(child, nil) if child.cut_off

        child.reason ||= "it was not forked in time"
        child.source.kill("it did not fork when it was told to") unless child.mold? || child.source.gone?
        child_lost(child, nil)
      end

      def lane_corrupt(number) = @cluster.reactors.lane_corrupt(number)

      def hard_timeout(child)
        return if child.condemned?

        name, reason = @options.jobs ? ["node.stuck", "its jobs make no progress"] : ["request.killed", "hard timeout"]
        Events.emit(name, **child.identity, **child.job, reason: reason)
        child.kill(reason, overdue: true)
        hook(:after_worker_hard_timeout, child)
      end

      private

      def stopping? = @cluster.shutdown.begun?

      def tell(child, exit_report)
        more = child.reactor? ? @cluster.reactors.in_flight : {}
        # That of a first boot is told when the server ends for it.
        more = { backtrace: child.detail }.compact if child.mold? && exit_report.stillborn? && @cluster.generations.proven?
        exit_report.tell(more)
        exit_report.tell_check unless stopping?
      end

      # The first worker that leaves has found the listeners' queues empty: who comes later
      # would wait for the slowest, and be reset. The reactor does this by itself.
      def close_the_doors(child) = (@cluster.refuse_connections if stopping? && child.worker? && child.ending&.success?)

      # It came up when nobody wanted it any more; it may be serving by now.
      def see_off(child)
        deadline = stopping? ? @cluster.shutdown.deadline : Sys.now + @options.stop_timeout
        child.leave(child.unwanted, deadline, patient: !stopping?)
        Events.emit("worker.leaving", **child.identity, reason: child.unwanted) if child.worker?
      end

      def mold_ready(child)
        Events.emit("mold.ready", **child.identity)
        @cluster.generations.mold_ready(child)
      end

      def worker_ready(child)
        Events.emit("worker.ready", **child.identity, **child.prefaulted)
        @cluster.rollout.worker_ready(child)
      end

      # While its row is still its own. Who is not only lost, but to blame for it, says something about its mold.
      def take_stock(child, exit_report)
        return if stopping? || !child.worker?

        fault = :own unless exit_report.wanted?
        fault &&= :elsewhere if exit_report.killed_from_outside? && !child.condemned? && !@oom.victim?(child)
        @cluster.generations.worker_gone(child, exit_report.reason, fault || :none)
      end

      def pass_on(child, exit_report, failed, innocent)
        reason = exit_report.reason
        return @cluster.reactors.lost(reason) if child.reactor?
        return if stopping?

        @payload.find_folder if child.mold?
        generations = @cluster.generations
        return generations.mold_gone(child, reason, cause: cause(child, innocent)) if child.mold?
        return generations.child_unfit(child, reason) if child.unfit?

        return unless child.worker?
        return generations.worker_failed(child, reason, cause: cause(child, innocent)) if failed

        @cluster.rollout.worker_lost(child, reason, working: exit_report.at_work?) if exit_report.accident?
      end

      # A node's runner takes jobs a moment before the node says that it is ready, and a job may be one that kills.
      # @return [Symbol] see Generations::Faults#worker_failed
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
