# frozen_string_literal: true

require_relative "simulation"

module ClusterSupport
  # For tests of the fate of generations, in a simulated cluster.
  module GenerationsCase
    include Clock
    include Listening

    LAST_TRY = Pando::Cluster::Generations::LAST_TRY

    def cluster(**options) = @cluster ||= ClusterSupport::Simulation.new(**options)
    def booted(**options) = cluster(**options).tap(&:boot)
    def generations = cluster.generations

    def reforking
      assert generations.refork("test"), events("refork.refused").map(&:payload).inspect
      cluster.ready(cluster.upcoming_mold).turn
    end

    # Another release serves in all slots, and is watched.
    def reload_watched
      cluster.options.canary = Pando::Cluster::Canary::Criteria.new(requests: 1000, seconds: 1000.0, longest: 1000.0)
      generations.reload(["command"], [])
      generations.upcoming.untried = "test"
      cluster.ready(cluster.upcoming_mold).settle
      assert_predicate generations, :watching?
    end

    # The mold's fork fails, in the kernel unless specified otherwise.
    def refuse(child, innocent: true)
      cluster.child_events.fork_failed(child, "no more processes", innocent: innocent)
    end

    def refused = events("refork.refused").map { |event| event[:reason] }
  end
end
