# frozen_string_literal: true

require "pando/cluster/monitor"
require_relative "simulation"

module ClusterSupport
  # For tests of molds that are released, in a simulated cluster.
  module MoldReleaserCase
    include Clock
    include Listening

    MIB = 1024**2
    MoldReleaser = Pando::Cluster::Generations::MoldReleaser
    Usage = Pando::Sys::Memory::Usage

    # Stand in for Generations::Conditions and Reload.
    Conditions = Struct.new(:obstacle)
    Reload = Struct.new(:awaits_mold?, :failed?)

    def setup
      super
      @conditions = Conditions.new
      @own = 40
    end

    def cluster(workers: 3, mold: :auto, **options)
      @cluster ||= ClusterSupport::Simulation.new(workers: workers, mold: mold, **options).tap(&:boot)
    end

    def generations = cluster.generations
    def released? = generations.released?
    def fallback_ready? = generations.fallback_ready?

    # Out of 100 MiB that each process has.
    def gauge
      own = -> { @own * MIB }
      source = Object.new
      source.define_singleton_method(:usage) { |_pid| Usage.new(50 * MIB, own.call, 100 * MIB) }
      source.define_singleton_method(:minor_faults) { |_pid| 0 }
      source.define_singleton_method(:anonymous) { |_pid| nil }
      Pando::Cluster::Memory::Gauge.new(source)
    end

    def releaser
      @releaser ||= MoldReleaser.new(cluster, @conditions, gauge)
    end

    # Long enough for the mold to be released, unless there is a reason against it.
    def pass(seconds = 60, reloading: false)
      (seconds / MoldReleaser::TICK).ceil.times do
        elapse(MoldReleaser::TICK)
        turn(reloading: reloading)
      end
      settle(reloading: reloading)
    end

    def turn(reloading: false) = releaser.reconcile(Reload.new(reloading, @reload_failed))

    def settle(reloading: false) = cluster.settle { turn(reloading: reloading) }

    # The mold is gone, for a good reason.
    def released(**options)
      cluster(**options)
      pass
      assert released?
      assert_equal 1, events("mold.released").size
      @events.clear
      cluster
    end

    # A reason to keep the mold of this generation does not apply to the next one.
    def assert_released_after_a_refork
      generations.refork("test")
      cluster.settle
      pass
      assert released?
    end

    # Boots from cold, without promoting a worker.
    def assert_heals_from_cold
      turn
      assert_equal [:heal, nil], [generations.upcoming.purpose, generations.upcoming.source]
      settle
    end

    # A refork serves and is under watch, and there was no mold to keep.
    def watched(**options)
      released(canary: Pando::Cluster::Canary::Criteria.new(requests: 1, seconds: 0.0, longest: 1.0), **options)
      generations.refork("test")
      cluster.settle do
        elapse(2)
        cluster.roster.ready_workers.each { |worker| cluster.serve(worker) }
        break if generations.watching?
      end
    end

    # The state as the next image reads it.
    def state_of(owner)
      state = Pando::Cluster::Upgrade::Document.new
      owner.to_state(state)
      Pando::Cluster::Upgrade::Document.parse(state.to_s)
    end
  end
end
