# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    module Memory
      # How much memory each process has, as well as it can be known for next to nothing: one process at a
      # time is measured exactly, and between two measurements its page faults say by how much it may have
      # grown at most, or, where a fault brings more than a page (huge pages), the kernel's count of its
      # memory. The larger a process, the longer it takes to measure it (a millisecond for 150 MiB), and the longer the
      # pause after that.
      #
      # Owned by the monitor.
      #
      # @api private
      class Gauge
        # Of one CPU, what measuring may take in the long run.
        SHARE = 0.02

        # Of a process, at some moment.
        Sample = Struct.new(:usage, :faults, :anonymous, :at)

        # @param source [#usage, #minor_faults, #anonymous]
        # @param clock [#call] seconds of CPU that this thread has had
        # @param page [Integer] bytes of a page
        def initialize(source = Sys::Memory, clock: -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) },
                       page: Sys::Memory::PAGE)
          @source = source
          @page = page
          @clock = clock
          @samples = {}
          @rested_at = @spent = 0.0
        end

        # @return [Float] seconds of CPU that all measurements have taken
        attr_reader :spent

        # @return [Boolean] whether another process may be measured without taking more than its share
        def rested?(now = Sys.now) = now >= @rested_at

        # Measures a process.
        # @return [Sys::Memory::Usage, nil] nil: it is gone
        def measure(pid)
          began_at = @clock.call
          faults = @source.minor_faults(pid) # before: what comes meanwhile counts twice rather than never
          anonymous = @source.anonymous(pid)
          usage = @source.usage(pid)
          spend(@clock.call - began_at)
          return @samples.delete(pid) && nil unless usage && faults

          @samples[pid] = Sample.new(usage, faults, anonymous, Sys.now)
          usage
        end

        # What it has that no file is behind, also what it shares: the kernel keeps count of it.
        # @return [Integer, nil] bytes; nil: it is gone
        def anonymous(pid) = @source.anonymous(pid)

        # Each in turn.
        # @param pids [Array<Integer>]
        def measure_next(pids)
          measure(pids.min_by { |pid| measured_at(pid) }) if pids.any? && rested?
        end

        # @return [Integer] bytes of private memory that it has at most, as far as its faults tell; 0: it is gone
        def most(pid)
          faults = @source.minor_faults(pid) or return 0
          sample = @samples[pid] or return faults * @page
          sample.usage.private + growth(pid, sample, faults)
        end

        # What it adds to the sum of PSS: of a page that it was given since, nobody else has a part.
        # @return [Integer] bytes; 0: it is gone, or was never measured
        def pss(pid)
          sample = @samples[pid] or return 0
          sample.usage.pss + growth(pid, sample, @source.minor_faults(pid) || sample.faults)
        end

        # @return [Sys::Memory::Usage, nil] as of its last measurement
        def last(pid) = @samples[pid]&.usage

        # @return [Float] when it was measured last; never: long ago
        def measured_at(pid) = @samples[pid]&.at || 0.0

        # @return [Integer] bytes, of all that were measured and are still there
        def total = @samples.each_value.sum { |sample| sample.usage.pss }

        # Forgets who is not among these.
        def keep(pids) = @samples.select! { |pid, _| pids.include?(pid) }

        private

        # Of a page that it had shared and has written to, only the fault tells.
        def growth(pid, sample, faults)
          anonymous = @source.anonymous(pid)
          counted = anonymous && sample.anonymous ? anonymous - sample.anonymous : 0
          [(faults - sample.faults) * @page, counted].max
        end

        def spend(seconds)
          @spent += seconds
          @rested_at = [@rested_at, Sys.now].max + (seconds / SHARE)
        end
      end
    end
  end
end
