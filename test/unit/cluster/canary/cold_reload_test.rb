# frozen_string_literal: true

require "test_helper"
require_relative "support/evaluation_case"

# The first requests of a release that is booted cost what those of the first generation cost, and a multiple of what
# they cost in workers that were forked from a warm one.
class CanaryColdReloadTest < Minitest::Test
  include CanarySupport::EvaluationCase

  COLD = 0.004 # seconds of CPU time

  def test_a_reload_after_a_refork
    reforked
    reload
    busy(canary, 20)
    pass 10
    cluster.settle

    assert_empty(events("canary.failed").map { |event| event[:reason] })
    assert_equal [:reload, 2], [generations.current.purpose, generations.current.number]
  end

  def test_one_without_a_trial_is_watched_by_the_same_measure
    reforked
    reload_now
    assert_predicate generations, :watching?
    cluster.roster.ready_workers.each { |worker| busy(worker, 20) }
    3.times { pass 10 }

    assert_empty(events("watch.failed").map { |event| event[:reason] })
    assert_equal [:reload, 2], [generations.current.purpose, generations.current.number]
  end

  def test_the_generation_before_one_that_is_rolled_back_is_as_warm_as_it_was
    reforked
    elapse 31
    generations.end_watch("test")
    assert_equal 1, generations.reforks.count
    reload_now
    assert_equal [true, 0], [generations.watching?, generations.reforks.count]
    generations.roll_back("test")

    assert_equal 1, generations.reforks.count
  end

  private

  # A warm generation serves, whose requests cost less than those of the first one did.
  def reforked
    booted(workers: 2, canary: TERMS)
    cluster.roster.ready_workers.each { |worker| busy(worker, 20) }
    begin_trial
    prove
    cluster.roster.ready_workers.each { |worker| serve(worker, 20) }
  end

  def reload
    elapse 31
    generations.reload(["command"], [])
    cluster.ready(cluster.upcoming_mold).turn
    cluster.ready(cluster.starting.first).turn
  end

  def reload_now
    elapse 31
    generations.reload(["command"], [])
    generations.upcoming.untried = "pando reload --now"
    cluster.ready(cluster.upcoming_mold).settle
  end

  def busy(worker, count)
    count.times do
      worker.row.start_job("GET", "/", nil, nil)
      over = cpu + COLD
      nil until cpu > over
      worker.row.finish_job
    end
  end

  def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end
