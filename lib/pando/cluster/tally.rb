# frozen_string_literal: true

require "pando/line_writer"

module Pando
  module Cluster
    # Counts, from the logged events, what has gone wrong since the start, and for metrics every event by its pool and
    # its cause. Adds up the work of workers that have ended. No count ever falls: a reload, a refork or an upgrade of
    # the monitor does not begin anew. Owned by the monitor.
    class Tally
      EVENTS = %w[worker.failed worker.lost worker.killed mold.failed mold.lost mold.killed reactor.failed reactor.lost
                  reactor.killed service.failed service.lost request.killed spawn.failed fork.failed
                  generation.discarded restart.throttled memory.short orphan.reaped request.poison].freeze
      # Events that report several requests at once.
      REQUESTS = %w[requests.lost requests.shed].freeze
      # Processes killed by the kernel's OOM killer.
      OOM = "oom.killed"
      # Workers replaced for the memory they took.
      FAT = "worker.outgrown"
      # Lines that are missing in the log, of all processes.
      LINES = "lines.lost"

      # Events that may make Pando discard their generation.
      FAILURES = %w[canary.failed watch.failed check.failed mold.failed mold.killed mold.lost worker.failed worker.lost
                    worker.killed fork.failed spawn.failed].freeze
      # Why a process or its request was killed, or a worker left, by the beginning of the reason.
      CAUSES = { "hard timeout" => "timeout", "timeout" => "timeout", "its jobs make no progress" => "timeout",
                 "it stood still" => "standstill", "it did not leave in time" => "late_exit",
                 "it was not ready in time" => "late_start", "it is stuck in its self-check" => "self_check",
                 "its private memory" => "memory", "pando kill" => "operator",
                 "requests waited" => "blocked_queue", "replaced" => "replaced", "scaled down" => "scaled" }.freeze
      # Events whose reason is looked up there. That of a killed process may begin with why it was leaving, so its event
      # has the cause.
      CAUSED = %w[worker.exited request.killed].freeze
      # What the workers of a pool have done; those that are seconds.
      WORK = %i[requests failures timeouts cpu faults minor_gcs major_gcs gc_time lock_wait].freeze
      SECONDS = %i[cpu gc_time lock_wait].freeze

      # @return [Symbol] one of a few
      def self.cause_of(reason) = (CAUSES.find { |text, _| reason.to_s.start_with?(text) }&.last || "other").to_sym

      # @return [Hash{Array(String, String, String) => Integer}] by event, pool (nil: there is only one) and cause (nil:
      #   the event has none); requests count one by one where an event reports several
      attr_reader :totals

      def initialize
        @lines_lost = 0
        @totals = Hash.new(0)
        @work = Hash.new { |work, pool| work[pool] = WORK.to_h { |name| [name, 0] } }
        @successes = Hash.new(0)
        @failures = {}
        @lines_before = LineWriter.lost
        @subscription = Events.subscribe { |event| count(event) }
      end

      # @return [Hash{String => Integer}] by event, without those that never happened
      def counts
        counts = totals.each_with_object(Hash.new(0)) do |((event, _, cause), number), sums|
          sums[event] += number if EVENTS.include?(event) || REQUESTS.include?(event)
          sums[OOM] += number if cause == "oom"
          sums[FAT] += number if event == "worker.leaving" && cause == "memory"
        end
        { **counts, LINES => lines_lost }.reject { |_, number| number.zero? }
      end

      # Counts lines lost in another process's log.
      def add_lost_lines(number) = @lines_lost += number

      # The work of all workers since the start, whether they live or not.
      # @param pool [Integer] its number @param workers [Hash{Child => Sys::Sample, nil}] that live
      def work(pool, workers)
        sums = workers.each_with_object(@work[pool].dup) do |(worker, sample), so_far|
          done_by(worker, sample).each { |name, number| so_far[name] += number }
        end
        { **sums, failures: sums[:requests] - successes(pool, sums) }
      end

      # The worker has ended, and its row is still its own.
      def retire(worker)
        return unless worker.worker? && worker.pidfd

        done_by(worker, worker.sample).each { |name, number| @work[worker.pool][name] += number }
      end

      def to_state(state)
        counts.each { |of, number| state.add("count", of: of, number: number) } # all but LINES are for an older Pando
        totals.each { |(of, pool, cause), number| state.add("total", of: of, in: pool, cause: cause, number: number) }
        @work.each { |pool, sums| state.add("work", in: pool, **sums) }
      end

      def from_state(state)
        lines = state.all("count").find { |record| record.text(:of) == LINES }
        add_lost_lines(lines.integer(:number)) if lines
        state.all("total").each do |record|
          key = [record.text(:of), record.read(:in, :text), record.read(:cause, :text)]
          @totals[key] += record.integer(:number)
        end
        state.all("work").each do |record|
          sums = @work[state.place(record.integer(:in))]
          WORK.each { |name| sums[name] += record.read(name, SECONDS.include?(name) ? :number : :integer) || 0 }
        end
      end

      def close = Events.unsubscribe(@subscription)

      private

      def lines_lost = @lines_lost + LineWriter.lost - @lines_before

      # A worker counts a request before its failure. Seen between the two, the request is a success, which no count may
      # take back.
      def successes(pool, sums)
        @successes[pool] = [@successes[pool], sums[:requests] - sums[:failures]].max
      end

      def done_by(worker, sample)
        { requests: worker.requests, failures: worker.row.failures, timeouts: worker.row.timeouts,
          cpu: sample&.cpu || 0.0, faults: sample&.faults || 0, minor_gcs: sample&.minor_gcs || 0,
          major_gcs: sample&.major_gcs || 0, gc_time: sample&.gc_time || 0.0, lock_wait: worker.row.lock_waited }
      end

      def count(event)
        number = REQUESTS.include?(event.name) || event.name == "requests.retried" ? event[:count] : 1
        @totals[[event.name, event[:pool], cause(event)]] += number
        @failures[event[:pool]] = [event[:generation], event.name] if FAILURES.include?(event.name)
      end

      # @return [String, nil] one of a few
      def cause(event)
        return event[:cause].to_s if event[:cause].is_a?(Symbol)
        return failure_of(event) if event.name == "generation.discarded"

        Tally.cause_of(event[:reason]).to_s if CAUSED.include?(event.name)
      end

      # What made Pando discard this generation.
      def failure_of(event)
        generation, name = @failures[event[:pool]]
        generation == event[:generation] ? name.split(".").first : "other"
      end
    end
  end
end
