# frozen_string_literal: true

require "support/lab/figures"

module Bench
  module Lab
    # Checks ten times a second which workers serve: when that changes (a refork, a kill), the fewest at a time, and
    # their generations.
    class Watch
      INTERVAL = 0.1 # seconds
      GAP = 3.0 # between changes that count as one

      # The processes at one moment.
      #
      # @!attribute at [Float] seconds of the monotonic clock
      # @!attribute workers [Array<Integer>] pids of those that can serve: not while they boot or drain
      # @!attribute others [Array<Integer>] pids of the other processes
      # @!attribute generations [Array<Integer>]
      Sight = Struct.new(:at, :workers, :others, :generations)

      # @return [Array<Sight>] one for each change
      attr_reader :sights

      # @param server [Server]
      # @param group [Group, Ledger]
      def initialize(server, group)
        @server = server
        @group = group
        @sights = []
        @last_seen = {}.compare_by_identity
        @lock = Mutex.new
      end

      # Watches for as long as the block runs.
      def during
        look
        @thread = Thread.new { loop { sleep(INTERVAL) && look } }
        yield
      ensure
        @thread&.kill&.join
      end

      # @return [Array<Array(Float, Float)>] when processes came, left, or began to serve
      def turnovers
        moments = @sights.each_cons(2).filter_map do |before, now|
          [@last_seen.fetch(before), now.at]
        end
        Figures.spans(moments, gap: GAP)
      end

      # @return [Integer] the fewest workers that served at the same time
      def fewest = @sights.map { |sight| sight.workers.size }.min

      # @return [Integer] generations after the first
      def reforks = @sights.flat_map(&:generations).max.to_i

      # @return [Array<Integer>] pids
      def workers = @sights.last.workers

      # @return [Sight]
      def look
        @lock.synchronize do
          titles = @group.pids(@server.pid).sort.to_h { |pid| [pid, title(pid)] }
          workers = serving(titles)
          seen(Sight.new(now, workers, titles.keys - workers, generations(titles.values)))
        end
      end

      private

      # Until a new process has a title of its own, it has its parent's. So one process counts for each title.
      def serving(titles)
        titles.filter_map { |pid, title| [pid, title[@server.worker_title]] if title[@server.worker_title] }
              .uniq(&:last).map(&:first)
      end

      def generations(titles)
        return [] unless @server.generation_title

        titles.filter_map { |title| title[@server.generation_title, :generation]&.to_i }.uniq.sort
      end

      def seen(sight)
        last = @sights.last
        @sights << sight unless last && same?(last, sight)
        @last_seen[@sights.last] = sight.at
        @sights.last
      end

      def same?(one, other) = one.to_a.drop(1) == other.to_a.drop(1)

      def title(pid)
        File.binread("/proc/#{pid}/cmdline").tr("\0", " ").strip
      rescue Errno::ENOENT, Errno::ESRCH
        ""
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
