# frozen_string_literal: true

module Pando
  module Cluster
    # Keeps every slot served, and replaces outdated workers. A replacement is ready before the old worker is asked to
    # leave, unless `unavailable` allows empty slots meanwhile. It works from the present state, not from its past
    # actions, so the next turn repairs any death. Owned by a Pool, in the monitor.
    class Rollout
      include Brief
      extend Serializable

      serialize size: :integer, wanted: :integer

      # How many workers there are to be, and the number of the configuration while that waits for lanes.
      attr_reader :size, :wanted

      def initialize(roster, spawner, generations, options, throttles: RestartThrottles.new, others: -> { 0 })
        @throttles = throttles
        @others = others
        @roster = roster
        @spawner = spawner
        @generations = generations
        @options = options
        @size = options.workers
      end

      # @param taken [Integer] lanes that are not for this pool
      # @return [Integer] the most workers: there is a lane for each of their threads, also while a rollout has more
      def most(taken = 0)
        threads = @roster.threads
        threads == 1 && taken.zero? ? Roster::LANES : ((Roster::LANES - taken) / threads) - @options.surge
      end

      def lanes
        most = [@size, (@options.workers if @options.auto_workers)].compact.max
        (most + @options.surge) * @roster.threads
      end

      def others = @others.call

      # As an operator asks for it: the other pools keep their workers. The configuration's numbers fit together.
      def scale(size) = size <= most(others) && resize(size)

      # As the configuration asks for it. If leaving workers have too many lanes, that waits.
      def follow_configuration
        size = @options.workers
        @wanted = (size unless resize(size))
      end

      def resize(size, reason = nil)
        return false unless size.between?(1, most)

        Events.emit("workers.scaled", from: @size, to: size, reason: reason)
        @wanted = nil
        @size = size
        true
      end

      def reconcile
        resize(@wanted) if @wanted
        serving.each { |generation| generation.backoff.settle }
        dismiss_surplus
        dismiss_replaced
        fill_slots
        @generations.raise_floor if @generations.upcoming && may_roll?
        roll if may_roll? && slots.any? { |slot| outdated_in(slot) }
        @generations.establish if complete?
      end

      # A replacement is ready: other workers in its slot may leave.
      def worker_ready(child)
        @generations.worker_ready(child)
        return if @generations.on_trial? && @options.surge.positive? # both serve, since they are compared

        @roster.in_slot(child.slot).each { |other| dismiss(other) if other != child && other.ready? }
      end

      # A worker died unexpectedly. Its slot is filled again at once, unless that happens too often.
      # @param working [Boolean] whether it was at a request, or at jobs
      def worker_lost(child, reason, working: false)
        return @throttles.pace(:worker, child.began_at || 0.0, slot: child.slot) if working && !@options.jobs

        @throttles.fail(:worker, reason, slot: child.slot)
      end

      # A worker crashes in its request, and has not ended yet, since Ruby writes its crash report. On busy CPUs that
      # takes long, so at most as many such workers as there are slots are replaced before they end. If the worker lives
      # after all, it leaves.
      def worker_crashing(child)
        return unless child.worker? && child.ready? && child.row.busy_since
        return if @roster.workers.count { |worker| worker.leaving? && !worker.draining? } >= size

        worker_lost(child, nil, working: true)
        Events.emit("worker.leaving", **child.identity, reason: "it crashes")
        child.ask_to_leave(nil, Sys.now + @options.stop_timeout, patient: true)
      end

      # Asks a ready worker to leave, and fills its slot again. The last one leaves once its successor is ready.
      def renew(child, reason, cause: nil)
        return ask_to_leave(child, reason, cause: cause) unless last?(child)
        return if child.replacement_wanted?

        child.replacement_reason = reason
        child.replacement_cause = cause
      end

      def awaited?(slot) = slot < size && !served?(slot)

      def wanting? = slots.any? { |slot| empty?(slot) || outdated_in(slot) }

      # Whether this ready worker stays until its successor is ready: no other serves, and both may run side by side.
      def last?(child) = !exclusive? && @roster.ready_workers == [child]

      # Asks a ready worker to leave, at once or when it has lost its connections. Its slot is filled again at once.
      def ask_to_leave(child, reason, cause: nil)
        drain = @options.drain if @options.drain.positive?
        Events.emit("worker.leaving", **child.identity, reason: reason, **{ cause: cause, drain: drain }.compact)
        return child.ask_to_leave_last(reason, drain, @options.stop_timeout) if drain

        child.ask_to_leave(reason, Sys.now + @options.stop_timeout, patient: true)
      end

      # A leaving worker gives up its connections sooner than `drain` allows.
      def hurry(leaver, reason)
        Events.emit("worker.hurried", **leaver.identity, connections: leaver.connections + leaver.streams,
                                                         seconds: leaver.drain_left.to_f.round, reason: reason)
        leaver.hurry(@options.stop_timeout)
      end

      def due = serving.filter_map { |one| one.backoff.due }.min

      def to_state(state) = state.add("rollout", configured: @options.workers, **serialized_fields)

      # The configuration may ask for another number than before the upgrade.
      def from_state(state)
        record = state.one("rollout")
        take_up(record)
        follow_configuration unless record.integer(:configured) == @options.workers
      end

      private

      def serving = [@generations.current, @generations.upcoming].compact
      def slots = (0...size)
      def served?(slot) = @roster.in_slot(slot).any?(&:ready?)
      def starting?(slot) = @roster.in_slot(slot).any?(&:coming?)
      def outdated_in(slot) = @roster.in_slot(slot).find { |child| child.ready? && outdated?(child) }
      def outdated?(child) = child.replacement_wanted? || @generations.outdated?(child)

      def dismiss(child)
        ask_to_leave(child, child.replacement_reason || "replaced", cause: child.replacement_cause)
      end

      # The last ready worker stays until another one is ready.
      def dismiss_surplus
        @roster.workers.each do |child|
          ask_to_leave(child, "scaled down") if child.slot >= size && child.ready? && !last?(child)
        end
      end

      # Retires the old worker that shares the canary's slot once the canary passes, or the canary once it fails.
      def dismiss_replaced
        return if @generations.on_trial?

        slots.each do |slot|
          ready = @roster.in_slot(slot).select(&:ready?)
          next if ready.size < 2

          outdated, new = ready.partition { |child| outdated?(child) }
          dismiss(outdated.first) if outdated.any? && new.any?
        end
      end

      def fill_slots
        slots.each { |slot| order(slot, mold_for_filling) if empty?(slot) }
      end

      # If workers must not run side by side (`exclusive`), the old one must be gone first.
      def empty?(slot) = !served?(slot) && !starting?(slot) && !(exclusive? && @roster.in_slot(slot).any?)

      # Until the canary has passed, the mold that is known to work fills empty slots.
      def mold_for_filling
        upcoming, current = [@generations.upcoming, @generations.current].map { |one| one if one&.forks? }
        return current unless upcoming
        return upcoming if upcoming.rolling? || emptied_for?(upcoming)

        current || (upcoming if alone_in_trial?(upcoming))
      end

      # The upcoming generation has the only mold.
      def alone_in_trial?(generation) = generation.canary? && (!canary_out? || @generations.on_trial?)

      # A slot is empty for the canary, which must not run beside the old worker.
      def emptied_for?(generation) = exclusive? && generation.canary? && !canary_out?

      def canary_out?
        @roster.workers.any? { |child| child.staying? && child.generation == @generations.upcoming.number }
      end

      # Whether workers may be replaced: by those of the upcoming generation, or of the current one.
      def may_roll?
        upcoming = @generations.upcoming
        upcoming.nil? || upcoming.canary? || upcoming.rolling?
      end

      def roll
        generation = @generations.upcoming || @generations.current
        return unless generation&.forks? && generation.backoff.over?
        return if generation.canary? && canary_out?

        make_room(room_for(generation)) unless generation.backoff.refused?
        replace(generation) unless exclusive?
      end

      def replace(generation)
        allowed = generation.canary? ? 1 : surge
        allowed -= slots.count { |slot| starting?(slot) && served?(slot) }
        due = slots.select { |slot| outdated_in(slot) && !starting?(slot) }
        due.min_by([allowed, 0].max) { |slot| [outdated_in(slot).connections, slot] }.each do |slot|
          order(slot, generation)
        end
      end

      def exclusive? = @options.exclusive

      # If only one worker is left, its successor comes first, whatever the setting says.
      def surge = @roster.ready_workers.size > 1 ? @options.surge : [@options.surge, 1].max

      # The number of slots that may be empty. If two workers must not share a slot, one slot must.
      def room_for(generation)
        least = exclusive? ? 1 : 0
        generation.canary? ? least : [@options.unavailable, least].max
      end

      # Breaks before it makes, as far as the setting allows; fill_slots does the rest.
      def make_room(allowed)
        return if allowed.zero?

        allowed -= slots.count { |slot| !served?(slot) }
        outdated = slots.filter_map { |slot| outdated_in(slot) }
        outdated.first([allowed, 0].max).each { |child| dismiss(child) unless last?(child) }
      end

      def complete?
        upcoming = @generations.upcoming
        return false unless upcoming&.rolling? || (upcoming&.canary? && upcoming.heal?)

        slots.all? { |slot| served?(slot) && !starting?(slot) && !outdated_in(slot) }
      end

      def order(slot, generation)
        return unless generation&.backoff&.over? && @throttles.over?(:worker, slot: slot)
        return if generation.backoff.refused? && tried?(generation)
        return if !@spawner.room_beside?(generation.mold) && hurry_leavers

        child = @spawner.worker(generation.mold, slot)
        return @generations.refused(generation, @spawner.refusal) unless child

        Events.emit("worker.spawning", **child.identity)
      end

      # There is no lane for another worker. The one that has been leaving longest gives up its connections.
      # @return [Boolean] whether one of them will leave soon
      def hurry_leavers
        leavers = @roster.everybody.workers.select(&:leaving?)
        return false if leavers.empty?

        oldest, seconds = leavers.map { |leaver| [leaver, leaver.drain_left || 0.0] }.min_by(&:last)
        return true if seconds.zero?

        hurry(oldest, "no lane to the reactor is left for a new worker")
        true
      end

      # While the kernel refuses, one worker is tried at a time.
      def tried?(generation) = @roster.workers.any? { |one| one.starting? && one.generation == generation.number }
    end
  end
end
