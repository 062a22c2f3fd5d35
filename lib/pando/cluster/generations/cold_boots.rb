# frozen_string_literal: true

require "pando/cluster/generations/ancestry"
require "pando/cluster/generations/reforks"
require "pando/cluster/generations/release_facts"
require "pando/sys/scheduler"

module Pando
  module Cluster
    class Generations
      # Ends a leak that each mold inherits and hands down: when that pays, a generation of the same release boots from
      # cold beside the current one, and takes its place if it proves itself (docs/reforking.md). Owned by Generations.
      class ColdBoots
        include Brief
        include ReleaseFacts
        include Wording
        extend Serializable

        # Seconds between two looks.
        LOOK = 30.0
        # Seconds for which a shortage of memory delays a boot, but no longer: nothing else frees this memory.
        PATIENCE = 60.0
        # Seconds from the first failure to the next attempt, and the most: each failure doubles them.
        FIRST = 60.0
        LONGEST = 6 * 3600.0

        SELF = "the application boots from cold beside its old processes as often as that pays"
        BY_HAND = "Pando does not boot it from cold, because automatic reforks are off: `pando reload` does it"
        SEARCH = "`pando doctor` finds what grows with each request (growth_per_request)"
        FACTS = %i[@told @rounds @least @failures @until @look_at @waits @reason].freeze
        private_constant :SELF, :BY_HAND, :SEARCH

        serialize ancestry: Ancestry, told: :flag, rounds: :integer, least: :integer, failures: :integer,
                  until: :number, reason: :text

        # @param clock [#cpu_time] seconds of CPU that a process has had
        def initialize(roster, generations, reforks, gauge: Memory::Gauge.new, conditions: Conditions::NONE,
                       clock: Sys::Scheduler)
          @roster = roster
          @generations = generations
          @reforks = reforks
          @gauge = gauge
          @conditions = conditions
          @ancestry = Ancestry.new(roster, gauge, clock)
          forget
        end

        def born(generation) = @ancestry.born(generation)

        # @param generation [Generation] that serves in all slots; another release may not leak
        def established(generation)
          super
          @ancestry.established(generation)
        end

        def reconcile(now = Sys.now)
          conclude(now) if @generation
          @ancestry.follow(@generations.current)
          return unless leak

          tell unless @told
          boot(now) if !@generation && due?(now)
        end

        def due = (@look_at if leak && @reforks.by_itself? && @look_at > Sys.now)

        # For `pando status`.
        # @return [Hash{Symbol => Object}] empty: no leak is known
        def explain
          return {} unless leak

          { **leak.to_h, waits: (waits unless @generation) }.compact
        end

        private

        def waits(now = Sys.now) = @reforks.by_itself? ? after_failure(now) || @waits : BY_HAND

        def after_failure(now)
          "the last one failed (#{@reason}): the next try is in #{(@until - now).ceil} s" if now < @until
        end

        def leak = @ancestry.lineage.leak

        def forget
          @told = false
          @rounds = @least = @failures = 0
          @until = @look_at = 0.0
          @waits = @reason = nil
        end

        def tell
          @told = true
          Events.emit("leak.inherited", generation: @generations.current&.number, bytes: leak.rate,
                                        requests: leak.requests, reason: words,
                                        advice: "#{@reforks.by_itself? ? SELF : BY_HAND}; #{SEARCH}")
        end

        def words
          rate = leak.rate < 1_048_576 ? format("%.1f KiB", leak.rate / 1024.0) : mebibytes(leak.rate)
          "each request leaves #{rate} in the memory that a mold hands down to the next one: " \
            "#{mebibytes(leak.before)} after #{counted(leak.after, "request")} of their line, " \
            "#{mebibytes(leak.bytes)} after #{leak.requests}"
        end

        def due?(now)
          return false if now < @look_at || !@reforks.by_itself?

          @waits = unrest || look(now)
          @waits.nil?
        end

        # A change of the processes that will soon be over.
        def unrest
          workers = @roster.staying_workers
          return if @generations.settled? && workers.any? && workers.all?(&:ready?)

          @generations.occupation&.first || Reforks::UNSETTLED
        end

        # @return [String, nil] what prevents a cold boot
        def look(now)
          @look_at = now + LOOK
          failure = after_failure(now)
          return failure if failure
          return "its line is to serve #{@least} requests first" if @ancestry.lineage.requests < @least

          obstructed(now) || @gauge.obstacle || unprofitable
        end

        def obstructed(now)
          obstacle = @conditions.obstacle
          unless obstacle
            @obstructed_since = nil
            return
          end

          @obstructed_since ||= now
          obstacle if @conditions.occupation || now - @obstructed_since < PATIENCE
        end

        # A look measures one process more: a large one takes milliseconds, in which the monitor does nothing else. The
        # mold is the last one: it may be young, and no measure for others.
        def unprofitable
          workers = @roster.workers.filter_map(&:pid)
          pids = [*workers, @generations.current.mold&.pid].compact
          @gauge.measure(pids.min_by { |pid| @gauge.measured_at(pid) }, budgeted: true)
          "it does not pay yet" unless @ancestry.lineage.pays?(pss(workers, pids), @ancestry.spent.first)
        end

        # Processes that were not measured yet count as much as a worker does on average.
        def pss(workers, pids)
          known, unknown = pids.partition { |pid| @gauge.last(pid) }
          sizes = (workers & known).map { |pid| @gauge.pss(pid) }
          sizes.empty? ? 0 : known.sum { |pid| @gauge.pss(pid) } + (unknown.size * sizes.sum / sizes.size)
        end

        def boot(now)
          @obstructed_since = nil
          @began_at = now
          @before = leak
          Events.emit("reboot.started", reason: words)
          @generation = @generations.reboot
          failed("the kernel has no process for its mold", now) unless @generation
        end

        def conclude(now)
          case @generation.state
          when :current then finished(now) unless @generations.watching?
          when :kept, :retired then @generation.served? ? finished(now) : failed("its mold is lost", now)
          when :discarded, :refused then failed(@generation.reason, now)
          end
        end

        # A cache that fills up looks like a leak until it is full: so the second cold boot needs more requests.
        def finished(now)
          @rounds += 1
          @least = @rounds == 1 ? @before.requests * 2 : 0
          @failures = 0
          Events.emit("reboot.finished", generation: @generation.number, seconds: (now - @began_at).round(3),
                                         from: @before.bytes, to: @ancestry.lineage.size)
          @generation = nil
        end

        def failed(reason, now)
          @reason = reason
          seconds = [FIRST * (2**[@failures, 20].min), LONGEST].min
          @failures += 1
          @until = now + seconds
          Events.emit("reboot.failed", generation: @generation&.number, reason: reason, seconds: seconds)
          @generation = nil
        end
      end
    end
  end
end
