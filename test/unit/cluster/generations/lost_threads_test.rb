# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../support/generations_case"

class LostThreadsLedgerTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  KEY = "/app/poller.rb:3"
  TEXT = "#{KEY}\nNo forked process has it\nStart it again.".freeze
  WORDS = "No forked process has it. Start it again."

  def test_a_generation_whose_canary_lacks_the_thread_is_refused_and_the_event_is_told_once
    source = try_out
    lose(worker_of(1))

    assert_equal(["refused"], events("finding.reported").map { |event| event[:action] })
    assert_equal([WORDS], events("generation.refused").map { |event| event[:reason] })
    assert_empty(events("generation.discarded") + events("refork.postponed"))
    assert_nil(generations.upcoming)
    cluster.settle
    cluster.roster.ready_workers.each { |worker| report(worker, :thread_held, KEY) }

    refute(generations.refork("test"))
    refute(generations.refork("test", force: true))
    assert_equal([WORDS] * 2, events("refork.withheld").map { |event| event[:reason] })
    assert_empty(events("refork.refused"))
    assert_equal([KEY, true], generations.lost_threads.explain.first.values_at(:location, :refused))
    assert_equal(1, events("finding.reported").size)
    refute_predicate(source, :excluded_as_source?)
  end

  def test_it_may_fork_once_its_thread_is_gone
    try_out
    lose(worker_of(1))
    cluster.settle
    first, *others = cluster.roster.ready_workers
    others.each { |worker| report(worker, :thread_held, KEY) }

    refute(generations.refork("test"), "a worker that has not answered may have it")
    report(first, :thread_gone, KEY)
    assert(generations.refork("test"))
    assert_equal(first, generations.upcoming.source)
  end

  def test_a_worker_that_started_it_a_moment_ago_and_is_promoted_does_not_fail
    try_out
    lose(worker_of(1))
    cluster.settle
    cluster.roster.ready_workers.each { |worker| report(worker, :thread_gone, KEY) }

    assert(generations.refork("test"))
    source = generations.upcoming.source
    report(source, :thread_tried, TEXT)

    assert_nil(generations.upcoming)
    assert_equal([[WORDS] * 2, 1], [events("generation.refused").map { |event| event[:reason] },
                                    events("finding.reported").size])
    assert_empty(events("generation.discarded") + events("fork.failed") + events("refork.postponed"))
    refute(generations.lost_threads.fit?(source))
  end

  def test_another_release_is_another_matter
    try_out
    lose(worker_of(1))
    cluster.settle
    generations.reload(["command"], [])
    cluster.settle { elapse(1) }

    assert_empty(generations.lost_threads.explain)
    assert(generations.refork("test"))
  end

  def test_a_release_that_is_rolled_back_leaves_what_was_known_of_the_one_before
    try_out
    report(worker_of(1), :thread_back, "/app/other.rb:1")
    lose(worker_of(1))
    cluster.settle
    cluster.roster.ready_workers.each { |worker| report(worker, :thread_held, KEY) }
    before = generations.lost_threads.explain.map { |one| one.except(:held) }
    reload_watched
    assert_empty(generations.lost_threads.explain)
    lose(worker_of(2), "/app/new.rb:1")
    generations.roll_back("test")

    assert_equal(before, generations.lost_threads.explain.map { |one| one.except(:held) })
    cluster.settle
    cluster.roster.ready_workers.each { |worker| report(worker, :thread_held, KEY) }
    elapse(100)
    refute(generations.refork("test"), "no canary is spent on what is known")
    assert_equal([WORDS], events("refork.withheld").map { |event| event[:reason] })
    lose(cluster.roster.ready_workers.first, "/app/other.rb:1")
    assert_equal(before, generations.lost_threads.explain.map { |one| one.except(:held) }, "it has come back before")
  end

  def test_what_was_known_of_a_release_does_not_come_back_once_the_next_one_is_proved
    try_out
    lose(worker_of(1))
    cluster.settle
    reload_watched
    generations.prove_for_good
    elapse(100)
    cluster.settle
    assert(generations.refork("test"))
    cluster.ready(cluster.upcoming_mold).turn
    generations.upcoming.untried = "test"
    cluster.settle { elapse(1) }
    assert_predicate(generations, :watching?)
    generations.roll_back("test")

    assert_empty(generations.lost_threads.explain)
  end

  def test_one_that_comes_back_in_time_lets_the_generation_pass
    try_out
    report(worker_of(1), :thread_back, KEY)
    cluster.turn

    refute_predicate(generations.lost_threads, :pending?)
    lose(worker_of(1))

    assert_empty(events("finding.reported"), "another worker has not used it so far")
    cluster.settle { elapse(1) }
    assert_equal([1, 1], cluster.generations_of_workers)
  end

  def test_while_it_is_open_nothing_is_rolled_out_and_the_trial_is_bounded
    try_out
    10.times { elapse(5) && cluster.turn }

    assert_equal(:canary, generations.upcoming.state)
    assert_in_delta(10, generations.lost_threads.remaining(generations.progress[:seconds]), 0.1)
    what, seconds = generations.occupation

    assert_equal("generation 1 (refork) is on trial: its first worker is to show whether the thread or timer " \
                 "task that #{KEY} starts comes back after a fork", what)
    assert_in_delta(10, seconds, 0.1)
    4.times { elapse(5) && cluster.turn }

    assert_equal("it is not known yet whether the thread or timer task that #{KEY} starts comes back after a fork, " \
                 "for that could not be tried out (too few requests came): the workers stay as they are, and the " \
                 "next refork tries again. Start it again.", events("generation.refused").first[:reason])
    assert_match(/few requests/, generations.lost_threads.obstacle)
    assert_empty(events("finding.reported"))
    cluster.settle
    cluster.roster.ready_workers.each { |worker| cluster.serve(worker, 20) }

    assert_nil(generations.lost_threads.obstacle)
  end

  def test_in_a_generation_that_tries_nothing_it_is_only_reported
    booted
    lose(worker_of(0))
    lose(worker_of(0))

    assert_equal([nil], events("finding.reported").map { |event| event[:action] })
    assert(generations.refork("test"))
  end

  def test_in_place_of_a_dead_mold_a_clean_image_is_better_than_a_worker_with_such_a_thread
    booted
    cluster.die(cluster.current_mold).turn
    report(generations.upcoming.source, :thread_tried, TEXT)

    assert_equal(1, events("generation.refused").size)
    cluster.turn
    assert_nil(generations.upcoming.source)
  end

  def test_it_comes_through_an_upgrade
    try_out
    lose(worker_of(1))
    document = Pando::Cluster::Upgrade::Document.new
    generations.lost_threads.to_state(document)
    other = Pando::Cluster::Generations::LostThreads.new(cluster.roster, generations, -> {})
    other.from_state(Pando::Cluster::Upgrade::Document.parse(document.to_s))

    told = [generations.lost_threads, other].map { |one| one.explain.map { |facts| facts.except(:held) } }

    assert_equal(1, told.uniq.size, told.inspect)
    assert_equal(KEY, told.last.first[:location])
  end

  def test_what_is_no_sentence_does_no_harm
    booted
    ["", "\n", KEY].each { |text| Pando::Cluster::Message::THREADS.each_key { |kind| report(worker_of(0), kind, text) } }

    assert_empty(events("finding.reported"), "it has come back before")
    assert_equal([0, 0], cluster.generations_of_workers)
  end

  private

  # A worker with the thread is promoted, and the canary serves.
  # @return [Child] that worker
  def try_out
    booted
    assert(generations.refork("test"))
    source = generations.upcoming.source
    report(source, :thread_tried, TEXT)
    cluster.ready(cluster.upcoming_mold).turn
    cluster.ready(cluster.roster.workers.find { |worker| worker.generation == 1 }).turn
    source
  end

  def worker_of(number) = cluster.roster.ready_workers.find { |worker| worker.generation == number }
  def lose(worker, key = KEY) = report(worker, :thread_missing, TEXT.sub(KEY, key))
  def report(worker, kind, text) = cluster.child_events.thread_reported(worker, kind, text)
end
