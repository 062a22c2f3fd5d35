# frozen_string_literal: true

require "pando/events"
require "pando/line_writer"

module Pando
  module Cluster
    # Counts what has gone wrong since the start, from the same events that are logged.
    #
    # Owned by the monitor.
    #
    # @api private
    class Tally
      EVENTS = %w[worker.failed worker.lost worker.killed mold.failed mold.lost mold.killed reactor.failed reactor.lost
                  reactor.killed service.failed service.lost request.killed spawn.failed fork.failed
                  generation.discarded restart.throttled memory.short orphan.reaped request.poison].freeze
      # Those of which one tells of several requests.
      REQUESTS = %w[requests.lost requests.shed].freeze
      # Of those that died, whom the kernel has killed for memory.
      OOM = "oom.killed"
      # Workers that were replaced for the memory they took.
      FAT = "worker.outgrown"
      # Lines that are missing in the log, of all processes.
      LINES = "lines.lost"

      def initialize
        @counts = Hash.new(0)
        @lines_before = LineWriter.lost
        @subscription = Events.subscribe { |event| count(event) }
      end

      # @return [Hash{String => Integer}] by event; what never happened is missing
      def counts
        lines = @counts[LINES] + LineWriter.lost - @lines_before
        lines.zero? ? @counts.except(LINES) : { **@counts, LINES => lines }
      end

      # Of another process's log.
      def add_lost_lines(number) = @counts[LINES] += number

      # Before another one counts.
      # @param counts [Hash{String => Integer}]
      def restore(counts)
        counts.each { |name, number| @counts[name] += number if [*EVENTS, *REQUESTS, OOM, FAT, LINES].include?(name) }
      end

      # @param state [Upgrade::State]
      def to_state(state)
        counts.each { |name, number| state.add("count", of: name, number: number) }
      end

      def from_state(state)
        restore(state.all("count").to_h { |record| [record.text(:of), record.integer(:number)] })
      end

      def close = Events.unsubscribe(@subscription)

      private

      def count(event)
        @counts[event.name] += 1 if EVENTS.include?(event.name)
        @counts[event.name] += event[:count] if REQUESTS.include?(event.name)
        @counts[OOM] += 1 if event[:cause] == :oom
        @counts[FAT] += 1 if event.name == "worker.leaving" && event[:cause] == :memory
      end
    end
  end
end
