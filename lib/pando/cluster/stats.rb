# frozen_string_literal: true

require "pando/version"

module Pando
  module Cluster
    # Reads the workers of one pool from the scoreboard, in any process that has the application. Made by
    # Pando.stats_hash for each answer.
    class Stats
      def initialize(scoreboard, pool, jobs: false)
        @scoreboard = scoreboard
        @pool = pool
        @jobs = jobs
        @clock = Time.now - Sys.now
      end

      def to_h
        workers = rows
        booted = workers.select { |row| booted?(row) }
        phase = booted.map(&:generation).max || 0
        { started_at: time(@scoreboard.started_at), workers: workers.size, phase: phase, booted_workers: booted.size,
          old_workers: booted.count { |row| row.generation != phase },
          worker_status: workers.zip(shares(workers)).map { |row, waiting| worker(row, waiting) },
          versions: { pando: VERSION, ruby: { engine: RUBY_ENGINE, version: RUBY_VERSION,
                                              patchlevel: RUBY_PATCHLEVEL } } }
      end

      private

      def rows
        workers = (0...@scoreboard.used).filter_map do |seat|
          row = @scoreboard.row(seat)
          row if alive?(row) && row.pool == @pool && Message::ROLES[row.role] == :worker
        end
        workers.sort_by { |row| [row.slot, row.generation] }
      end

      # The row of a process that is being forked is blank.
      def alive?(row) = row.pid.positive? && %i[adopted ready leaving].include?(state(row))

      def booted?(row) = %i[ready leaving].include?(state(row))
      def state(row) = Sys::Row::STATES[row.state]

      # The queue is common to all workers. So that their sum is right, each shows its share.
      def shares(workers)
        takers = workers.select { |row| state(row) == :ready }
        each, rest = @scoreboard.waiting(@pool).divmod([takers.size, 1].max)
        workers.map do |row|
          next 0 unless state(row) == :ready

          each + (takers.index(row) < rest ? 1 : 0)
        end
      end

      def worker(row, waiting)
        { started_at: time(row.started_at), pid: row.pid, index: row.slot, phase: row.generation, booted: booted?(row),
          last_checkin: time(row.heartbeat), last_status: @jobs ? node_status(row) : status(row, waiting) }
      end

      def status(row, waiting)
        busy = row.jobs.size
        { backlog: waiting, running: row.threads, busy_threads: busy, max_threads: row.threads,
          pool_capacity: state(row) == :ready ? [row.threads - busy, 0].max : 0, requests_count: row.requests }
      end

      # Only its runner knows how many jobs it may have at once.
      def node_status(row) = { running: row.running, busy_threads: row.running, requests_count: row.requests }

      def time(seconds) = seconds && (@clock + seconds).utc.strftime("%Y-%m-%dT%H:%M:%SZ")
    end
  end
end
