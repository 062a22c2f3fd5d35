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
      # Seconds without a heartbeat after which an idle worker is taken for stuck.
      STANDSTILL = 15.0

      # @param observer [Caretaker]
      def initialize(roster, observer)
        @roster = roster
        @observer = observer
        @looked_at = Sys.now
      end

      # @return [Float] when to look again, at the latest
      def due(now = Sys.now)
        known = @roster.flat_map { |child| [child.deadline, *request_deadlines(child)] }
        [*known.compact, now + TICK].min
      end

      def enforce(now = Sys.now)
        # Who was stopped together with us (job control, a frozen container) gets time to stir.
        overslept = now - @looked_at > STANDSTILL / 3
        @looked_at = now
        @roster.to_a.each do |child|
          next if child.gone?

          enforce_request(child, now)
          enforce_standstill(child, now) unless overslept
          enforce_state(child, now)
        end
      end

      private

      # A soft deadline that was signalled is no reason to wake up again.
      def request_deadlines(child)
        row = child.row
        return unless child.pidfd && child.worker? && row.busy_since

        [row.hard_deadline, (row.soft_deadline unless child.signalled_job == row.job)]
      end

      def enforce_request(child, now)
        row = child.row
        return unless child.pidfd && child.worker? && row.busy_since

        hard = row.hard_deadline
        soft = row.soft_deadline
        return @observer.hard_timeout(child) if hard && now >= hard
        return unless soft && now >= soft && child.signalled_job != row.job

        child.signalled_job = row.job
        child.pidfd.signal("URG")
      end

      def enforce_standstill(child, now)
        row = child.row
        return unless child.worker? && child.ready? && row.busy_since.nil?

        beat = row.heartbeat
        child.kill("it stood still for #{(now - beat).round} s") if beat && now - beat > STANDSTILL
      end

      def enforce_state(child, now)
        return unless child.deadline && now >= child.deadline
        return child.deadline = now + TICK if child.patient? && child.row.busy_since

        child.deadline = nil
        case child.state
        when :ordered then @observer.spawn_overdue(child)
        when :adopted then child.kill("it was not ready in time")
        else child.kill(child.leaving? ? "it did not leave in time" : "its link ended")
        end
      end
    end
  end
end
