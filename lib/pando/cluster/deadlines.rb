# frozen_string_literal: true

module Pando
  module Cluster
    # Everything that must not last for ever: requests (read from the
    # scoreboard), starts, farewells, and processes that stand still.
    #
    # Owned by the monitor; looks at each turn of its loop.
    #
    # @api private
    class Deadlines
      # Seconds between two looks at the scoreboard: requests begin without telling us.
      TICK = 0.25
      # Seconds between two searches for one who was forked and has not reported.
      SEARCH = 1.0
      # Seconds without a heartbeat after which an idle worker is taken for stuck, at least.
      STANDSTILL = 15.0

      # Standstills of the whole server that are remembered: whatever runs for longer has no deadline.
      KEPT = 32

      # Seconds for a process with threads to show where they stand, before it is killed.
      LAST_WORDS = 0.5

      # @param observer [ChildEvents]
      # @param options [Options] among them the seconds that a worker may wait for a job that has begun to come; whether
      #   workers do several at once, on threads
      def initialize(roster, observer, options)
        @options = options
        @roster = roster
        @observer = observer
        @looked_at = @awake_since = Sys.now
        @frozen = []
      end

      # The whole server has stood still: that is no one's timeout.
      # @param seconds [Float] until now
      def postpone(seconds, now = Sys.now)
        return if seconds.zero?

        @awake_since = now
        @frozen = [*@frozen, [now, seconds]].last(KEPT)
        @roster.each { |child| child.postpone(seconds) }
      end

      # @return [Float] when to look again, at the latest
      def due(now = Sys.now)
        known = @roster.flat_map do |child|
          [child.deadline, expected_by(child), child.step_deadline, *request_deadlines(child)]
        end
        [*known.compact, now + TICK].min
      end

      def enforce(now = Sys.now)
        # Who was stopped together with us (job control, a frozen container) gets time to stir.
        @awake_since = now if now - @looked_at > standstill / 3
        @looked_at = now
        @roster.to_a.each do |child|
          next if child.gone?

          enforce_request(child, now)
          enforce_standstill(child, now)
          enforce_birth(child, now)
          enforce_step(child, now)
          enforce_state(child, now)
        end
      end

      private

      def standstill = STANDSTILL + @options.longest_wait

      # What has been acted upon is no reason to wake up again.
      def request_deadlines(child)
        return unless working?(child)

        soft = child.row.soft_deadline
        [moved(child, child.row.hard_deadline), (moved(child, soft) unless child.signalled_deadline == soft)]
      end

      # A request's own deadlines are on the scoreboard, which is its worker's to write.
      def moved(child, deadline)
        return deadline if @frozen.empty? || deadline.nil?

        since = child.row.busy_since or return deadline
        deadline + @frozen.sum { |thawed_at, seconds| thawed_at > since ? seconds : 0.0 }
      end

      def working?(child) = child.worker? && child.pidfd && !child.condemned? && child.row.busy_since

      # A job may move its deadlines: each new one is signalled anew.
      def enforce_request(child, now)
        return unless working?(child)

        hard = moved(child, child.row.hard_deadline)
        soft = child.row.soft_deadline
        return @observer.hard_timeout(child) if hard && now >= hard
        return unless soft && now >= moved(child, soft) && child.signalled_deadline != soft

        child.signalled_deadline = soft
        child.signal("URG")
      end

      def enforce_standstill(child, now)
        return unless child.worker? && child.ready? && !child.condemned? && child.row.busy_since.nil?

        beat = child.row.heartbeat
        return unless beat && now - [beat, @awake_since].max > standstill

        child.kill("it stood still for #{(now - beat).round} s") unless last_words?(child, now)
      end

      # Nobody else knows what holds it up.
      # @return [Boolean] whether it is still to say so
      def last_words?(child, now)
        return false unless @options.jobs && child.worker? && child.pidfd
        return now < child.last_words_until if child.last_words_until

        child.last_words_until = now + LAST_WORDS
        child.signal("URG")
      end

      # A request that runs has a deadline of its own, and what is left to do after it has stop_timeout. A stream
      # that it has begun may have none, and is not waited for.
      def awaited?(child) = child.patient? && child.row.busy_since && !child.row.streaming?

      # The setting that has given it its time, as of Spawner.
      def allowance(child)
        cold = child.mold? && (child.source.nil? || child.source.mold?)
        cold ? "boot_timeout #{seconds(@options.boot_timeout)}" : "spawn_timeout #{seconds(@options.spawn_timeout)}"
      end

      def seconds(number) = format("%g s", number)

      def expected_by(child) = (child.expected_by if child.ordered?)

      # It may not have been forked yet, for its forker is busy; then it is looked for again.
      def enforce_birth(child, now)
        return unless expected_by(child) && now >= child.expected_by

        child.expected_by = now + SEARCH
        @observer.birth_overdue(child)
      end

      def enforce_step(child, now)
        return unless child.step_deadline && now >= child.step_deadline

        child.step_overdue
        @observer.step_overdue(child)
      end

      def enforce_state(child, now)
        return unless child.deadline
        return child.deadline = now + @options.stop_timeout if awaited?(child)
        return if now < child.deadline

        return child.deadline = child.last_words_until if last_words?(child, now)

        child.deadline = nil
        case child.state
        when :ordered then @observer.spawn_overdue(child)
        when :adopted then child.kill("it was not ready in time (#{allowance(child)})")
        else child.kill(child.leaving? ? "it did not leave in time" : "its link ended", overdue: child.leaving?)
        end
      end
    end
  end
end
