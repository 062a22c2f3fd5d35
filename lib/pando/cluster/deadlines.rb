# frozen_string_literal: true

require "pando/cluster/slow_requests"
require "pando/sys/scheduler"

module Pando
  module Cluster
    # Enforces everything that must not last for ever: requests (read from the scoreboard), starts, exits, and
    # standstills of processes. Owned by a Pool, in the monitor; called at each turn of its loop.
    class Deadlines
      # Seconds between two looks at the scoreboard: requests begin without a message to the monitor.
      TICK = 0.25
      # Seconds between two searches for a process that was forked and has not reported.
      SEARCH = 1.0
      # Seconds without a heartbeat after which an idle worker is taken for stuck, at least.
      STANDSTILL = 15.0
      # Standstills of the whole server that are remembered.
      KEPT = 32
      # Seconds in which another process has found out where a child stands, which has a limit of its own.
      EXAMINATION = 15.0
      # Seconds that a job node has to print the stacks of its threads, before it is killed.
      STACKS = 0.5

      def initialize(roster, observer, options, slow = SlowRequests.new(options))
        @slow = slow
        @options = options
        @roster = roster
        @observer = observer
        @looked_at = @awake_since = Sys.now
        @frozen = []
        @efforts = {}.compare_by_identity # of children that are at a step
      end

      # The whole server has stood still. That time counts for no timeout.
      # @param seconds [Float] until now
      def postpone(seconds, now = Sys.now)
        return if seconds.zero?

        @awake_since = now
        @frozen = [*@frozen, [now, seconds]].last(KEPT)
        @roster.each { |child| child.postpone(seconds) }
      end

      def due(now = Sys.now)
        known = @roster.flat_map do |child|
          [child.deadline, expected_by(child), child.step_deadline, *request_deadlines(child)]
        end
        [*known.compact, now + TICK].min
      end

      def enforce(now = Sys.now)
        # Processes that were stopped together with the monitor (job control, a frozen container) get time to go on.
        @awake_since = now if now - @looked_at > standstill / 3
        @looked_at = now
        @efforts.keep_if { |child, _| child.starting? }
        @roster.to_a.each do |child|
          next if child.gone?

          enforce_requests(child, now)
          enforce_standstill(child, now)
          enforce_report(child, now)
          enforce_step(child, now)
          enforce_state(child, now)
        end
      end

      private

      def standstill = STANDSTILL + @options.longest_wait

      # A deadline that has been signalled is no reason to wake up again.
      def request_deadlines(child)
        return unless working?(child)

        row = child.row
        row.jobs.flat_map do |number|
          soft = row.soft_deadline(number)
          [with_standstills(row, number, row.hard_deadline(number)),
           (with_standstills(row, number, soft) if child.unsignalled?(number, soft))]
        end
      end

      # A request's deadlines are in its worker's row, which only the worker writes, so standstills are added here.
      def with_standstills(row, number, deadline)
        return deadline if @frozen.empty? || deadline.nil?

        since = row.busy_since(number) or return deadline
        deadline + @frozen.sum { |thawed_at, seconds| thawed_at > since ? seconds : 0.0 }
      end

      def working?(child) = child.worker? && child.pidfd && !child.condemned? && child.row.busy_since

      def enforce_requests(child, now)
        return unless working?(child)

        slow = @slow.on?
        child.row.jobs.each do |number|
          @slow.look(child, number, now) if slow
          enforce_request(child, number, now)
        end
      end

      # A job may move its deadlines. Each new one is signalled again.
      def enforce_request(child, number, now)
        hard = with_standstills(child.row, number, child.row.hard_deadline(number))
        soft = child.row.soft_deadline(number)
        return @observer.hard_timeout(child, number) if hard && now >= hard
        return unless soft && now >= with_standstills(child.row, number, soft) && child.unsignalled?(number, soft)

        child.signalled(number, soft)
        child.signal("URG")
      end

      def enforce_standstill(child, now)
        return unless child.worker? && child.ready? && !child.condemned? && child.row.busy_since.nil?

        beat = child.row.heartbeat
        return unless beat && now - [beat, @awake_since].max > standstill

        child.kill("it stood still for #{(now - beat).round} s") unless shows_stacks?(child, now)
      end

      # Only the node itself can say what holds it up.
      # @return [Boolean] whether it still has time for that
      def shows_stacks?(child, now)
        return false unless @options.jobs && child.worker? && child.pidfd
        return now < child.stacks_until if child.stacks_until

        child.stacks_until = now + STACKS
        child.signal("URG")
      end

      def expected_by(child) = (child.expected_by if child.ordered?)

      # The child may not be forked yet, since its forker is busy. Then the search is repeated.
      def enforce_report(child, now)
        return unless expected_by(child) && now >= child.expected_by

        child.expected_by = now + SEARCH
        @observer.report_overdue(child)
      end

      def enforce_step(child, now)
        return unless child.step_deadline

        effort = effort_of(child, now)
        return if now < child.step_deadline
        return child.enter_step(child.step, now + @options.check_timeout) if effort.great?(now)

        give_up_step(child)
      end

      def give_up_step(child)
        child.step_overdue
        @observer.step_overdue(child)
      end

      # A child gets a new one with each deadline.
      def effort_of(child, now)
        known = @efforts[child]
        known = @efforts[child] = Effort.new(child, now) unless known&.until == child.step_deadline
        known.tap { |effort| effort.look(now) }
      end

      def enforce_state(child, now)
        return unless child.deadline
        return child.deadline = [child.deadline, now + @options.stop_timeout].max if awaited?(child)
        return if now < child.deadline
        return child.deadline = child.stacks_until if shows_stacks?(child, now)

        child.deadline = nil
        case child.state
        when :ordered then @observer.spawn_overdue(child)
        when :adopted then enforce_start(child, now)
        else child.kill(child.leaving? ? Child::LEFT_LATE : "its link ended", overdue: child.leaving?)
        end
      end

      # A step that has got more time, again and again, is at fault: it may wait for a lock in a loop.
      def enforce_start(child, now)
        return child.kill("it was not ready in time (#{allowance(child)})") unless child.step_deadline

        child.deadline = now + EXAMINATION # if it goes on to another step
        give_up_step(child)
      end

      # A running request has its own deadline, and then the worker has stop_timeout. A stream is not waited for.
      def awaited?(child) = child.patient? && child.row.jobs.any? { |number| !child.row.streaming?(number) }

      # The setting that limits its start, as in Spawner.
      def allowance(child)
        cold = child.mold? && (child.source.nil? || child.source.mold?)
        setting = cold ? :boot_timeout : :spawn_timeout
        "#{setting} #{format("%g", @options[setting])} s"
      end

      # Tells a step that takes long from one that waits for a lock: the main thread, which takes the steps, runs, or
      # waits for a CPU or a disk. A GC has to copy the pages that it writes to, which takes seconds where page faults
      # are slow, the CPU is limited, or memory is swapped.
      class Effort
        attr_reader :until

        def initialize(child, now)
          @pid = child.pid
          @until = child.step_deadline
          @looked_at = now
          @waited = 0.0
        end

        # At most once a tick: most steps take less, and then nothing is read from /proc.
        def look(now)
          return if now - @looked_at < TICK

          @before ? add_wait(now) : start
          @looked_at = now
        end

        # @return [Boolean] whether the thread has used at least half of the time that is known
        def great?(now) = !@before.nil? && now > @since && spent - @before + @waited >= (now - @since) / 2

        private

        def start
          @since = Sys.now
          @before = spent
        end

        def add_wait(now)
          @waited += now - @looked_at if Sys::Scheduler.waits_for_disk?(@pid)
        end

        # @return [Float] seconds
        def spent = Sys::Scheduler.effort(@pid).to_f
      end
      private_constant :Effort
    end
  end
end
