# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/sys/scheduler"

module Pando
  module Cluster
    class Generations
      # What has been served in each slot since a generation began, and the CPU time that took; of one slot on average.
      # Who takes the place of one that has died goes on from there.
      #
      # Owned by Survey, in the monitor. An upgrade forgets the dead.
      #
      # @api private
      class ServiceRecord
        extend Serializable

        serialize shared: :number

        # What one has done: requests, and seconds of CPU.
        Done = Struct.new(:requests, :cpu) do
          def +(other) = Done.new(requests + other.requests, cpu + other.cpu)
        end
        NOTHING = Done.new(0, 0.0).freeze

        # Of a slot: the worker that serves in it, and what those before it have done.
        Slot = Struct.new(:worker, :done, :before) do
          def sum = before + done
        end

        # @param clock [#cpu_time]
        def initialize(clock = Sys::Scheduler)
          @clock = clock
          @shared = 0.0
          @slots = {}
        end

        # @param seconds [Float] of CPU that all workers have in common
        def share(seconds)
          @shared += seconds
        end

        # @param workers [Array<Child>] that serve
        def add(workers)
          @slots = workers.to_h { |worker| [worker.slot, slot(worker, @slots[worker.slot])] }
        end

        # @return [Float] a slot
        def requests = @slots.each_value.sum { |slot| slot.sum.requests } / @slots.size.to_f

        # @return [Float] seconds, a slot
        def cpu = (@shared + @slots.each_value.sum { |slot| slot.sum.cpu }) / @slots.size

        private

        def slot(worker, last)
          same = last && last.worker.equal?(worker)
          # who has just died has had what it had
          done = Done.new(worker.requests, @clock.cpu_time(worker.pid) || (same ? last.done.cpu : 0.0))
          Slot.new(worker, done, same ? last.before : last&.sum || NOTHING)
        end
      end
    end
  end
end
