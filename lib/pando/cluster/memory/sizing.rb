# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    module Memory
      # Chooses the number of workers with `workers :auto`: as many as there are CPUs, unless so many do not fit into
      # memory.
      #
      # A worker's need is its private memory at the age at which most of its caches are full; Guard handles later
      # leaks. If memory is short before any worker has that age, there are half as many, until one has. A number that
      # a user sets (`pando scale`, TTIN, TTOU) takes precedence. Owned by a Pool, in the monitor.
      class Sizing
        include Wording

        extend Serializable

        # If the rollout's size differs, a user has set it. The CPUs are those that it was chosen for.
        serialize_as "sizing", size: :integer, cpus: :integer, guessed: :flag

        # Requests after which a worker is measured.
        RIPE = 50
        # The most workers that are remembered, of the generation that serves.
        REMEMBERED = 32
        # Seconds between two measurements, and seconds without a change before one more worker is tried.
        PACE = 1.0
        CALM = 60.0
        # The share of all memory that the processes may take together, without `memory total:`.
        SHARE = 0.8
        # The room that one more worker takes, as a multiple of its need.
        MARGIN = 1.25
        # Seconds in which half as many workers should help, and the most seconds that the others may take to leave.
        EFFECT = 5.0
        DEPARTURE = 30.0

        UNRIPE = "memory is short, and no worker has served #{RIPE} requests yet".freeze
        private_constant :UNRIPE

        # @param shortage [#short_at] @param available [#call] bytes
        def initialize(roster, rollout, generations, options, gauge, shortage,
                       available: Sys::Memory.method(:limit))
          @roster = roster
          @rollout = rollout
          @generations = generations
          @options = options
          @gauge = gauge
          @shortage = shortage
          @available = available
          @looked_at = @changed_at = 0.0
          @needs = {}
          @guessed = @ripened = @short = false
        end

        def reconcile(now = Sys.now)
          return @size = nil unless @options.auto_workers
          return if now - @looked_at < PACE

          @short = @shortage.short_at > @looked_at
          @looked_at = now
          return if @rollout.wanted

          follow_configuration
          follow_release(now)
          @size ||= @rollout.size
          return unless @size == @rollout.size

          measure
          decide(now)
        end

        def due = (@looked_at + PACE if @options.auto_workers && (ours? || @cpus != @options.workers))

        # For `pando status`.
        # @return [String, nil] nil: without `workers :auto`
        def explain
          return unless @options.auto_workers
          return "set by hand" unless ours?
          return unexplained if need.nil?

          "#{@options.workers} CPUs; #{mebibytes(need)} a worker beside #{mebibytes(rest)}, " \
            "#{mebibytes(budget)} may be used"
        end

        private

        def ours? = @size.nil? || @size == @rollout.size

        def unexplained
          return "one for each CPU" unless @size&.< @options.workers

          "#{@options.workers} CPUs; fewer since memory was short, until a worker has served #{RIPE} requests"
        end

        # A reload may have found another number of CPUs, for which the rollout has another size.
        def follow_configuration
          @size = nil if @cpus && @cpus != @options.workers
          @cpus = @options.workers
        end

        # Workers that were forked from what has booted anew share less, and may need more.
        def follow_release(now)
          current = @generations.current
          return if current.nil? || current.number == @generation || !current.successor? || current.source

          @needs.clear
          @ripened = false
          @generation = current.number
          @changed_at = now
        end

        def measure
          ripe = ripe_workers.find { |worker| !@needs.key?(worker.pid) }
          # The first of all is measured in any case: the guard may have taken all the time that there is for that.
          return @gauge.measure_next(pids) unless ripe && (@gauge.rested? || need.nil?)

          usage = @gauge.measure(ripe.pid) or return
          remember(ripe, usage.private)
        end

        def ripe_workers
          ripe = @roster.ready_workers.select { |one| one.generation == serving && one.requests >= RIPE }
          @ripened ||= ripe.any?
          ripe
        end

        def serving = @generations.current&.number

        def pids = [Process.pid, *@roster.everybody.reject(&:condemned?).filter_map(&:pid)]

        # A new generation shares more than the last one did.
        def remember(worker, size)
          @needs.clear unless worker.generation == @generation
          @generation = worker.generation
          @needs[worker.pid] = size
          @needs.shift if @needs.size > REMEMBERED
        end

        # @return [Integer, nil] bytes: the median of the remembered workers
        def need = @needs.values.sort[@needs.size / 2]

        # @return [Integer] bytes of all processes, without the private memory of the workers
        def rest
          workers = @roster.workers.reject(&:condemned?)
          @gauge.total(pids) - workers.sum { |worker| @gauge.last(worker.pid)&.private.to_i }
        end

        def budget = @options.memory.total || (@available.call * SHARE).to_i

        def known? = @roster.everybody.all? { |child| child.pid.nil? || @gauge.last(child.pid) }

        def decide(now)
          return guess(now) unless need&.positive?

          # While memory is short, processes come and go faster than they are measured. Then there is even less room.
          known = known?
          room = budget - rest
          return scale(affordable(room), now) if (known || @short) && affordable(room) < @size

          grow(room, now) if known && !@short && @size < @options.workers
        end

        def affordable(room) = (room / need).clamp(1, @options.workers)

        # What was guessed is set right at once.
        def grow(room, now)
          most = ((room / need.to_f) - (MARGIN - 1)).floor.clamp(1, @options.workers)
          return @guessed = false if most <= @size
          return if !@guessed && now - @changed_at < CALM

          scale(@guessed ? most : @size + 1, now)
        end

        # So many workers end, or are replaced, before they are old enough to be judged that none ever may be.
        def guess(now)
          return if !@short || @ripened || @size == 1 || now - @changed_at < (departing? ? DEPARTURE : EFFECT)

          scale(@size / 2, now, UNRIPE)
          @guessed = true
        end

        # Whether some of those that are too many, or of the previous release, are still there.
        def departing?
          @roster.staying_workers.any? { |one| one.slot >= @size || one.generation < serving.to_i }
        end

        def scale(size, now, reason = explain)
          @changed_at = now
          @guessed = false
          @rollout.resize(size, "auto: #{reason}")
          @size = size
        end
      end
    end
  end
end
