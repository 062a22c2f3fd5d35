# frozen_string_literal: true

require "pando/admin/monitor"
require "pando/sys/memory"

module Pando
  module Admin
    # Measures the memory of each process in the background, one after the other: the kernel needs a millisecond and
    # more for that, and a scrape must not wait for it. A pause of a thousand times as long follows, so that it takes a
    # thousandth of a core. When a process comes or goes, the shares of all the others change, so each is measured anew
    # with short pauses. Runs on a thread of the admin process, or of the service that exports metrics.
    class MemorySurvey
      # How many times as long as a measurement the pause is: until each process has been measured since the last
      # change, and after that.
      HURRIED = 50
      CALM = 1000
      # The shortest and the longest pause, in seconds.
      PAUSES = (0.01..30.0)
      # Seconds between two looks at which processes there are: after an event about one, and without.
      LOOK = 0.5
      LATEST = 60.0
      ABOUT_PROCESSES = /\A(?:worker|mold|service|reactor|admin|monitor)\./

      # @param monitor [Monitor] @param meter [#usage] of the memory of a process
      def initialize(monitor, meter = Sys::Memory)
        @monitor = monitor
        @meter = meter
        @usages = {}.freeze
        @tried_at = {}
        @changed_at = @rest_until = @look_at = 0.0
      end

      def start
        Thread.new { loop { sleep(step) } }
        self
      end

      # @return [Sys::Memory::Usage, nil] nil: not measured yet
      def [](pid) = @usages[pid]

      # An event has happened. May be called on any thread.
      def heard(event) = (look_soon if event.match?(ABOUT_PROCESSES))

      # Looks which processes there are, in a moment. May be called on any thread.
      def look_soon = @look_at = [@look_at, Sys.now + LOOK].min

      # Measures a process, if it is time.
      # @return [Float] seconds until the next step
      def step(now = Sys.now)
        look(now) if now >= @look_at
        pid = @tried_at.key(@tried_at.values.min)
        hurried = pid && @tried_at[pid] < @changed_at
        measure(pid, now, hurried ? HURRIED : CALM) if pid && (hurried || now >= @rest_until)
        [@rest_until - Sys.now, LOOK].min.clamp(PAUSES)
      rescue Monitor::Unavailable
        @look_at = now + LOOK
        LOOK
      end

      private

      # Learns which processes there are. An event that comes meanwhile has it look again.
      def look(now)
        @look_at = now + LATEST
        pids = @monitor.snapshot(fresh: LOOK).processes.map(&:last)
        return if pids.sort == @tried_at.keys.sort

        @changed_at = now
        @tried_at = pids.to_h { |pid| [pid, @tried_at.fetch(pid, 0.0)] }
        @usages = @usages.slice(*pids).freeze
      end

      # A process that has ended meanwhile has none.
      def measure(pid, now, factor)
        before = used
        usage = @meter.usage(pid)
        @usages = { **@usages, pid => usage }.freeze if usage
        @tried_at[pid] = now
        @rest_until = now + ((used - before) * factor).clamp(PAUSES)
      end

      def used = ::Process.clock_gettime(::Process::CLOCK_THREAD_CPUTIME_ID)
    end
  end
end
