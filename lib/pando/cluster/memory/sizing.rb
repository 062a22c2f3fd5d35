# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/mebibytes"
require "pando/sys/memory"

module Pando
  module Cluster
    module Memory
      # How many workers there are to be where the configuration leaves that to us (`workers :auto`): as many as there
      # are CPUs, unless so many do not fit into memory.
      #
      # What a worker needs is its private memory at the age at which most of it has been filled; what it leaks later
      # is a matter for Guard. Whoever scales by another way (`pando scale`, TTIN, TTOU) has the last word.
      #
      # Owned by the monitor.
      #
      # @api private
      class Sizing
        include Mebibytes

        extend Serializable

        serialize_as "sizing", size: :integer # another than the rollout's: somebody else has chosen that

        # Requests after which a worker counts.
        RIPE = 50
        # Workers that are remembered, of the newest generation.
        REMEMBERED = 32
        # Seconds between two measurements, and without a change before one worker more is tried.
        PACE = 1.0
        CALM = 60.0
        # Of the memory there is, what all processes together may take where `memory total:` does not say.
        SHARE = 0.8
        # How much more than one worker needs must be there for one more.
        MARGIN = 1.25

        # @param options [#auto_workers, #workers, #memory]
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

        # Called at each turn of the monitor's loop.
        def reconcile(now = Sys.now)
          return @size = nil unless @options.auto_workers
          return if now - @looked_at < PACE

          @looked_at = now
          @size ||= @rollout.size
          return unless @size == @rollout.size

          measure
          decide(now)
        end

        # @return [Float, nil]
        def due = (@looked_at + PACE if @options.auto_workers && ours?)

        # For `pando status`.
        # @return [String, nil] nil: the number is not ours to choose
        def explain
          return unless @options.auto_workers
          return "set by hand" unless ours?
          return "one for each CPU" if need.nil?

          "#{@options.workers} CPUs; #{mebibytes(need)} a worker beside #{mebibytes(rest)}, " \
            "#{mebibytes(budget)} may be used"
        end

        private

        def ours? = @size.nil? || @size == @rollout.size

        def measure
          pids = [Process.pid, *@roster.everybody.filter_map { |child| child.pid unless child.condemned? }]
          @gauge.keep(pids)
          ripe = @roster.ready_workers.find { |worker| worker.requests >= RIPE && !@needs.key?(worker.pid) }
          return @gauge.measure_next(pids) unless ripe && @gauge.rested?

          usage = @gauge.measure(ripe.pid) or return
          remember(ripe, usage.private)
        end

        # A new generation shares more than the last one did.
        def remember(worker, size)
          @needs.clear if @generation.to_i < worker.generation
          return unless worker.generation == (@generation = [@generation.to_i, worker.generation].max)

          @needs[worker.pid] = size
          @needs.shift if @needs.size > REMEMBERED
        end

        # @return [Integer, nil] bytes: the median of all that are remembered
        def need = @needs.values.sort[@needs.size / 2]

        # @return [Integer] bytes that all take together, without what each worker has for itself
        def rest
          @gauge.total - @roster.workers.sum { |worker| @gauge.last(worker.pid)&.private.to_i }
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
