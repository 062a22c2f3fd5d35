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

    # The mold's fork fails, in the kernel unless specified otherwise.
    def refuse(child, innocent: true)
      cluster.child_events.fork_failed(child, "no more processes", innocent: innocent)
    end

    def refused = events("refork.refused").map { |event| event[:reason] }
  end
end
