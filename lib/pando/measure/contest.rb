# frozen_string_literal: true

require "pando/measure/subject"
require "pando/measure/client"
require "pando/measure/figures"

module Pando
  module Measure
    # The load. Both servers run all the time and get the same requests in slices, in turn, so that other work on the
    # machine affects both alike. After each slice, reads the memory and the CPU time of the server that answered it.
    class Contest
      # Readings, in addition to the one before the load.
      SLICES = 40
      # Requests in a slice, at least: a percentile of fewer means nothing.
      SHORTEST = 20
      # Bytes of memory that the machine must keep for other processes.
      SPARE = 200 * 1_048_576

      # @return [Array<Side>] the other server first, Pando last
      attr_reader :sides
      # @return [String, nil] why it ended early
      attr_reader :cut_short

      # @param tell [#call] gets what is being done, and the number of requests done and the total, of each server
      def initialize(subjects, rehearsal, plan, tell)
        @plan = plan
        @selection = rehearsal.selection
        @tell = tell
        @sides = subjects.map { |subject| Side.new(subject, plan.workers, [], []) }
        @clients = subjects.to_h do |subject|
          [subject, Client.new(subject.port, headers: rehearsal.headers, clients: plan.clients)]
        end
      end

      # @raise [NotMeasured]
      def call
        sides.each { |side| look(side, 0) }
        done = 0
        while done < @plan.total && !cut_short
          count = [slice, @plan.total - done].min
          order(done).each { |side| load(side, done, count) }
          @tell.call("loading", done += count, @plan.total)
          check_memory
        end
        sides.each(&:facts) # while the servers run
        self
      end

      private

      def slice = @slice ||= [@plan.total.fdiv(SLICES).ceil, SHORTEST].max

      # The second server of a turn has had a pause, so the order alternates.
      def order(done) = (done / slice).even? ? sides : sides.reverse

      def load(side, first, count)
        answers = @clients.fetch(side.subject).run(@selection.slice(first, count))
        side.slices << answers
        raise side.subject.failure("the server ended under load") unless side.subject.alive?

        look(side, first + count)
      end

      def look(side, done)
        side.readings << [done.fdiv(@plan.workers), side.subject.tree.read]
      end

      def check_memory
        free = File.read("/proc/meminfo")[/^MemAvailable: +(\d+) kB$/, 1]
        return if free.nil? || free.to_i * 1024 >= SPARE

        @cut_short = "the machine had only #{free.to_i / 1024} MiB of memory left"
      end
    end
  end
end
