# frozen_string_literal: true

require "pando/cluster/monitor"
require_relative "simulation"

module ClusterSupport
  # For tests of the memory's guard: the test says how much memory each process has.
  module MemoryGuardCase
    include ClusterSupport::Clock
    include ClusterSupport::Listening

    MIB = 1024**2
    Usage = Pando::Sys::Memory::Usage

    # Stands for /proc: what each process has; every page of it was a fault.
    class Source
      attr_reader :measured

      def initialize
        @sizes = {}
        @measured = []
      end

      def []=(pid, mebibytes)
        @sizes[pid] = (mebibytes * MIB).to_i
      end

      def [](pid) = @sizes[pid]

      def usage(pid)
        @measured << pid
        (size = @sizes[pid]) && Usage.new(size + (4 * MIB), size)
      end

      def minor_faults(pid) = @sizes[pid] && (@sizes[pid] / Pando::Sys::Memory::PAGE)
      def anonymous(pid) = anonymous_sizes[pid]
      def anonymous_sizes = @anonymous_sizes ||= {}
    end

    def start(workers: 3, pressure: -> {}, **limits)
      @cluster = ClusterSupport::Simulation.new(workers: workers).tap(&:boot)
      @source = Source.new
      @cluster.roster.each { |child| @source[child.pid] = 20 }
      @source[Process.pid] = 10
      keep(options(**limits.transform_values { |size| size * MIB }), pressure)
    end

    def keep(options, pressure, group = nil, roster: @cluster.roster)
      @gauge = gauge = Pando::Cluster::Memory::Gauge.new(@source, clock: -> { @cost.to_f * @source.measured.size })
      @cluster.gauge = gauge
      shortage = Pando::Cluster::Memory::Shortage.new(options, gauge, pressure: pressure, group: group)
      @options = options
      @guard = guard(roster, gauge, shortage)
    end

    def guard(roster, gauge, shortage)
      Pando::Cluster::Memory::Guard.new(roster, @options, @cluster.rollout, @cluster.generations, gauge, shortage)
    end

    # A worker of another pool.
    def stranger(size)
      @cluster.roster.of(1).admit(:worker, 0, 0, ClusterSupport::FakeLink.new, nil).tap do |one|
        one.adopt(ClusterSupport::FakePidfd.new(@cluster.spawner.class.pid))
        one.become_ready
        @source[one.pid] = size
      end
    end

    def options(**limits) = ClusterSupport.options(memory: Pando::Cluster::Memory::Limits.new(**limits))

    def look(times = 1)
      times.times do
        elapse(0.3)
        @guard.reconcile
      end
    end

    def worker(slot) = @cluster.worker_in(slot)
    def leaving = @cluster.leaving.map(&:slot)

    def grow(slot, size)
      @cluster.serve(worker(slot))
      @source[worker(slot).pid] = size
    end
  end
end
