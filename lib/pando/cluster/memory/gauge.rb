# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    module Memory
      # The memory of each process, as precisely as it can be known at little cost. One process at a time is measured
      # exactly; between two measurements its page faults tell how much it can have grown at most, or, where a fault
      # brings more than a page (huge pages), the kernel's count of its memory. Larger processes take longer to measure
      # (a millisecond for 150 MiB), and the pause after that is longer. Owned by the monitor.
      class Gauge
        # The share of one CPU that measuring may take in the long run, without what callers have budgets for.
        SHARE = 0.02
        # Seconds for which somebody who was refused a measurement and does not ask again keeps its place.
        PLACE = 1.0

        OBSTACLE = "/proc/PID/smaps_rollup cannot be read, so Pando cannot know how much memory its processes take"
        ADVICE = "`memory worker:`, `hard:` and `total:` have no effect, `refork :auto` reforks by numbers of " \
                 "requests and no longer once the app is warm, and no cold boot ends a leak: run the server where " \
                 "/proc has this file, or use `refork after:`"
        private_constant :OBSTACLE, :ADVICE

        Sample = Struct.new(:usage, :faults, :anonymous, :at)

        # @param clock [#call] seconds of CPU that this thread has used
        # @param page [Integer] bytes of a page
        def initialize(source = Sys::Memory, clock: -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) },
                       page: Sys::Memory::PAGE)
          @source = source
          @page = page
          @clock = clock
          @samples = {}
          @rested_at = @spent = 0.0
          @waiting = {}.compare_by_identity # when they asked last; the first one has waited longest
        end

        # @return [String, nil] why no process can be measured
        attr_reader :obstacle

        # @return [Float] seconds of CPU that all measurements have taken
        attr_reader :spent

        # Tries on this process whether the kernel has figures.
        def probe
          return if @source.usage(Process.pid)

          @obstacle = OBSTACLE
          Events.emit("memory.unavailable", reason: OBSTACLE, advice: ADVICE)
        end

        # @param asker [Object] that wants to measure. Those that were refused have their turn first, the longest first:
        #   the guards of all pools look at the same moment, always in the same order
        # @return [Boolean] whether another measurement stays within that share, and is this one's turn
        def turn_of?(asker, now = Sys.now)
          @waiting.keep_if { |_, asked_at| now - asked_at < PLACE }
          @waiting[asker] = now
          return false if now < @rested_at || !@waiting.first.first.equal?(asker)

          @waiting.delete(asker)
          true
        end

        # @param budgeted [Boolean] whether the caller limits the CPU time of its measurements by a budget of its own:
        #   then they cause no pause, in which others could not measure
        # @return [Sys::Memory::Usage, nil] nil: it is gone
        def measure(pid, budgeted: false)
          began_at = @clock.call
          faults = @source.minor_faults(pid) # first: growth during the measurement counts twice rather than never
          anonymous = @source.anonymous(pid)
          usage = @source.usage(pid)
          spend(@clock.call - began_at, pause: !budgeted)
          return @samples.delete(pid) && nil unless usage && faults

          @samples[pid] = Sample.new(usage, faults, anonymous, Sys.now)
          usage
        end

        # Its anonymous memory, shared or not, as the kernel counts it.
        # @return [Integer, nil] bytes; nil: it is gone
        def anonymous(pid) = @source.anonymous(pid)

        # Measures one of them; each in turn.
        def measure_next(pids)
          measure(pids.min_by { |pid| measured_at(pid) }) if pids.any? && turn_of?(self)
        end

        # @return [Integer] the most private memory that it can have by its faults, in bytes; 0: it is gone
        def most(pid)
          faults = @source.minor_faults(pid) or return 0
          sample = @samples[pid] or return faults * @page
          sample.usage.private + growth(pid, sample, faults)
        end

        # Its part of the sum of PSS. Pages since its last measurement are not shared.
        # @return [Integer] bytes; 0: it is gone, or was never measured
        def pss(pid)
          sample = @samples[pid] or return 0
          sample.usage.pss + growth(pid, sample, @source.minor_faults(pid) || sample.faults)
        end

        # @return [Sys::Memory::Usage, nil] as of its last measurement
        def last(pid) = @samples[pid]&.usage

        # @return [Float] when it was measured last; 0.0: never
        def measured_at(pid) = @samples[pid]&.at || 0.0

        # @param pids [Array<Integer>] of the processes that count
        # @return [Integer] bytes that those among them take together that were measured
        def total(pids) = @samples.values_at(*pids).compact.sum { |sample| sample.usage.pss }

        # It has been reaped.
        def forget(pid) = @samples.delete(pid)

        private

        # A write to a shared page adds private memory, and only the fault shows it.
        def growth(pid, sample, faults)
          anonymous = @source.anonymous(pid)
          counted = anonymous && sample.anonymous ? anonymous - sample.anonymous : 0
          [(faults - sample.faults) * @page, counted].max
        end

        def spend(seconds, pause:)
          @spent += seconds
          @rested_at = [@rested_at, Sys.now].max + (seconds / SHARE) if pause
        end
      end
    end
  end
end
