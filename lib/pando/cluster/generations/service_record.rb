# frozen_string_literal: true

require "pando/cluster/carried"
require "pando/sys/scheduler"

module Pando
  module Cluster
    class Generations
      # What the workers of a generation have served, and the CPU time that took, for one of them on average. It only
      # grows: who takes the place of one that has died goes on from there, and if they become more or fewer each is
      # as old as before.
      #
      # Owned by Survey, in the monitor.
      #
      # @api private
      class ServiceRecord
        extend Carried

        carry requests: :number, cpu: :number

        # Requests and seconds of one who has done nothing yet.
        NOTHING = [0, 0.0].freeze

        # @return [Float] a worker
        attr_reader :requests
        # @return [Float] seconds, of a worker
        attr_reader :cpu

        # @param clock [#cpu_time]
        def initialize(clock = Sys::Scheduler)
          @clock = clock
          @requests = @cpu = 0.0
          @workers = {}
        end

        # @param seconds [Float] of CPU that all workers have in common
        def share(seconds, workers)
          @cpu += seconds / workers.size
        end

        # After an upgrade: how far each had come is not known, but that it is in the sums.
        def take_up(...)
          super.tap { @workers = nil }
        end

        # @param workers [Array<Child>] that serve
        def add(workers)
          before = @workers || {}
          marks = workers.to_h { |worker| [worker.pid, mark(worker, before[worker.pid] || NOTHING)] }
          grow(marks, before) if @workers
          @workers = marks
        end

        private

        def grow(marks, before)
          grown = marks.map { |pid, mark| mark.zip(before[pid] || NOTHING).map { |now, last| [now - last, 0].max } }
          @requests += grown.sum(&:first) / marks.size.to_f
          @cpu += grown.sum(&:last) / marks.size
        end

        # Who has just died has had what it had.
        def mark(worker, before) = [worker.requests, @clock.cpu_time(worker.pid) || before.last]
      end
    end
  end
end
