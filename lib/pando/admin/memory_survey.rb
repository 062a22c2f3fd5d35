# frozen_string_literal: true

require "pando/admin/monitor"
require "pando/sys/memory"

module Pando
  module Admin
    # Measures the memory of each process in the background, one after the other: the kernel needs a millisecond and
    # more for that, and a scrape must not wait for it. A pause of a thousand times as long follows, so that it takes a
    # thousandth of a core. Runs on a thread of the admin process.
    class MemorySurvey
      # How many times as long as a measurement the pause is: before all processes have been measured once, and after.
      FIRST = 50
      LATER = 1000
      # The shortest and the longest pause, in seconds, and the least that a round takes.
      PAUSES = (0.01..30.0)
      ROUND = 4.0

      # @param monitor [Monitor]
      def initialize(monitor)
        @monitor = monitor
        @usages = {}.freeze
      end

      # @return [self]
      def start
        Thread.new { measure }
        self
      end

      # @param pid [Integer]
      # @return [Sys::Memory::Usage, nil] nil: not measured yet
      def [](pid) = @usages[pid]

      private

      def measure
        factor = FIRST
        loop do
          began_at = Sys.now
          round(factor)
          factor = LATER
          sleep([began_at + ROUND - Sys.now, PAUSES.min].max)
        end
      end

      def round(factor)
        pids = @monitor.snapshot(fresh: ROUND).processes.map(&:last)
        @usages = @usages.slice(*pids).freeze
        pids.sort_by { |pid| @usages.key?(pid) ? 1 : 0 }.each do |pid|
          before = used
          usage = Sys::Memory.usage(pid)
          @usages = { **@usages, pid => usage }.freeze if usage
          sleep(((used - before) * factor).clamp(PAUSES))
        end
      rescue Monitor::Unavailable
        nil # later
      end

      def used = ::Process.clock_gettime(::Process::CLOCK_THREAD_CPUTIME_ID)
    end
  end
end
