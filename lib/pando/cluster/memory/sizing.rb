# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    module Memory
      # Chooses the number of workers with `workers :auto`: as many as there are CPUs, unless so many do not fit into
      # memory.
      #
      # A worker's need is its private memory at the age at which most of its caches are full; Guard handles later
      # leaks. A number that a user sets (`pando scale`, TTIN, TTOU) takes precedence. Owned by a Pool, in the monitor.
      class Sizing
        include Wording

        extend Serializable

        # If the rollout's size differs, a user has set it. The CPUs are those that it was chosen for.
        serialize_as "sizing", size: :integer, cpus: :integer

        # Requests after which a worker is measured.
        RIPE = 50
        # The most workers that are remembered, of the newest generation.
        REMEMBERED = 32
        # Seconds between two measurements, and seconds without a change before one more worker is tried.
        PACE = 1.0
        CALM = 60.0
        # The share of all memory that the processes may take together, without `memory total:`.
        SHARE = 0.8
        # The room that one more worker takes, as a multiple of its need.
        MARGIN = 1.25

        # @param available [#call] bytes
        def initialize(roster, rollout, options, gauge, available: Sys::Memory.method(:limit))
          @roster = roster
          @rollout = rollout
          @options = options
          @gauge = gauge
          @available = available
          @looked_at = @changed_at = 0.0
          @needs = {}
        end

        def reconcile(now = Sys.now)
          return @size = nil unless @options.auto_workers
          return if now - @looked_at < PACE

          @looked_at = now
          return if @rollout.wanted

          follow_configuration
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
          return "one for each CPU" if need.nil?

          "#{@options.workers} CPUs; #{mebibytes(need)} a worker beside #{mebibytes(rest)}, " \
            "#{mebibytes(budget)} may be used"
        end

        private

        def ours? = @size.nil? || @size == @rollout.size

        # A reload may have found another number of CPUs, for which the rollout has another size.
        def follow_configuration
          @size = nil if @cpus && @cpus != @options.workers
          @cpus = @options.workers
        end

        def measure
          ripe = @roster.ready_workers.find { |worker| worker.requests >= RIPE && !@needs.key?(worker.pid) }
          return @gauge.measure_next(pids) unless ripe && @gauge.turn_of?(self)

          usage = @gauge.measure(ripe.pid) or return
          remember(ripe, usage.private)
        end

        def pids = [Process.pid, *@roster.everybody.reject(&:condemned?).filter_map(&:pid)]

        # A new generation shares more than the last one did.
        def remember(worker, size)
          @needs.clear if @generation.to_i < worker.generation
          return unless worker.generation == (@generation = [@generation.to_i, worker.generation].max)

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
          return unless need&.positive? && known?

          room = budget - rest
          return scale(affordable(room), now) if affordable(room) < @size
          return if @size >= @options.workers || now - @changed_at < CALM

          scale(@size + 1, now) if room > (@size + MARGIN) * need
        end

        def affordable(room) = (room / need).clamp(1, @options.workers)

        def scale(size, now)
          @changed_at = now
          @rollout.resize(size, "auto: #{explain}")
          @size = size
        end
      end
    end
  end
end
