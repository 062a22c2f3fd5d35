# frozen_string_literal: true

require "pando/events"
require "pando/line_writer"

module Pando
  module Cluster
    # Counts, from the logged events, what has gone wrong since the start. Owned by the monitor.
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
      NAMES = [*EVENTS, *REQUESTS, OOM, FAT, LINES].freeze

      def initialize
        @counts = Hash.new(0)
        @lines_before = LineWriter.lost
        @subscription = Events.subscribe { |event| count(event) }
      end

      # @return [Hash{String => Integer}] by event, without those that never happened
      def counts
        lines = @counts[LINES] + LineWriter.lost - @lines_before
        { **@counts, LINES => lines }.reject { |_, number| number.zero? }
      end

      # Counts lines lost in another process's log.
      def add_lost_lines(number) = @counts[LINES] += number

      # Adds the counts of before an upgrade.
      def restore(counts) = counts.slice(*NAMES).each { |name, number| @counts[name] += number }

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
