# frozen_string_literal: true

require "pando/measure/client"
require "pando/measure/errors"
require "pando/measure/figures"

module Pando
  module Measure
    # The load. Both servers run all the time and get the same requests in slices, in turn, so that other work on the
    # machine affects both alike. After each slice, reads the memory and the CPU time of the server that answered it.
    #
    # @api private
    class Contest
      # The figures of one server.
      #
      # @!attribute readings [Array<Array(Float, ProcessTree::Reading)>] requests of a worker, and the reading then
      # @!attribute slices [Array<Array<Client::Answer>>]
      Record = Struct.new(:subject, :readings, :slices) do
        # @return [Array<Client::Answer>]
        def answers = slices.flatten(1)

        # @return [Float] seconds of CPU time under load
        def cpu = readings.last.last.cpu - readings.first.last.cpu
      end

      # Readings, in addition to the one before the load.
      SLICES = 40
      # Requests in a slice, at least: a percentile of fewer means nothing.
      SHORTEST = 20
      # Bytes of memory that the machine must keep for other processes.
      SPARE = 200 * 1_048_576
      private_constant :SLICES, :SHORTEST, :SPARE

      # @return [Array<Record>]
      attr_reader :records
      # @return [String, nil] why it ended early
      attr_reader :cut_short

      # @param plan [Plan] @param selection [Selection] @param headers [Hash{String => String}]
      # @param progress [#call] gets the number of requests done and the total, of each server
      def initialize(subjects, selection, plan, headers:, progress: ->(_, _) {})
        @plan = plan
        @selection = selection
        @progress = progress
        @records = subjects.map { |subject| Record.new(subject, [], []) }
        @clients = subjects.to_h do |subject|
          [subject, Client.new(subject.port, headers: headers, clients: plan.clients)]
        end
      end

      # @return [self]
      # @raise [NotMeasured]
      def call
        records.each { |record| look(record, 0) }
        done = 0
        while done < @plan.total && !cut_short
          count = [slice, @plan.total - done].min
          order(done).each { |record| load(record, done, count) }
          @progress.call(done += count, @plan.total)
          check_memory
        end
        self
      end

      private

      def slice = @slice ||= [@plan.total.fdiv(SLICES).ceil, SHORTEST].max

      # The second server of a turn has had a pause, so the order alternates.
      def order(done) = (done / slice).even? ? records : records.reverse

      def load(record, first, count)
        answers = @clients.fetch(record.subject).run(@selection.slice(first, count))
        record.slices << answers
        raise record.subject.failure("the server ended under load") unless record.subject.alive?

        look(record, first + count)
      end

      def look(record, done)
        record.readings << [done.fdiv(@plan.workers), record.subject.tree.read]
      end

      def check_memory
        free = File.read("/proc/meminfo")[/^MemAvailable: +(\d+) kB$/, 1]
        return if free.nil? || free.to_i * 1024 >= SPARE

        @cut_short = "the machine had only #{free.to_i / 1024} MiB of memory left"
      end
    end
  end
end
