# frozen_string_literal: true

require_relative "../../support/generations_case"

module CanarySupport
  # For tests of a generation on trial or under watch, in a simulated cluster.
  module EvaluationCase
    include ClusterSupport::GenerationsCase

    TERMS = Pando::Cluster::Canary::Criteria.new(requests: 20, seconds: 10, longest: 30)
    LOOK = Pando::Cluster::Canary::Trial::LOOK

    private

    # Both have served enough requests for a comparison.
    def on_trial(**options)
      booted(workers: 2, canary: TERMS, **options)
      cluster.roster.ready_workers.each { |worker| serve(worker, 60) }
      begin_trial
    end

    def begin_trial
      elapse 31
      reforking
      cluster.ready(cluster.starting.first).turn
      cluster.leaving.each { |child| cluster.die(child, ClusterSupport.ended) }
    end

    def prove
      serve(canary, 20)
      pass 10
      cluster.settle
      assert_nil generations.upcoming
    end

    def fail_once
      elapse 31
      generations.refork("test")
      cluster.die(cluster.upcoming_mold).turn
    end

    def canary = cluster.roster.ready_workers.find { |worker| worker.generation == generations.upcoming.number }
    def serve(worker, count = 1) = cluster.serve(worker, count)

    def fail_jobs(worker, count)
      count.times do
        worker.row.start_job("GET", "/", nil, nil)
        worker.row.fail_job
        worker.row.finish_job
      end
    end

    # Advances in the monitor's steps.
    def pass(seconds)
      (seconds / LOOK).ceil.times do
        elapse LOOK
        cluster.turn
      end
    end
  end
end
