# frozen_string_literal: true

require "pando/events"

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
                  generation.discarded restarts.damped memory.short stranger.reaped].freeze
      # Of those that died, whom the kernel has killed for memory.
      OOM = "oom.killed"
      # Workers that were replaced for the memory they took.
      FAT = "worker.outgrown"

      def initialize
        @counts = Hash.new(0)
        @subscription = Events.subscribe { |event| count(event) }
      end

      # @return [Hash{String => Integer}] by event; what never happened is missing
      def counts = @counts.dup

      # Before another one counts.
      # @param counts [Hash{String => Integer}]
      def restore(counts)
        counts.each { |name, number| @counts[name] += number if [*EVENTS, OOM, FAT].include?(name) }
      end

      def close = Events.unsubscribe(@subscription)

      private

      def count(event)
        @counts[event.name] += 1 if EVENTS.include?(event.name)
        @counts[OOM] += 1 if event[:cause] == :oom
        @counts[FAT] += 1 if event.name == "worker.leaving" && event[:cause] == :memory
      end
    end
  end
end
