# frozen_string_literal: true

require "test_helper"
require "pando/events/catalogue"
require_relative "../support/generations_case"

# What follows when a worker must not be forked, for requests have changed its process.
class ChangedStateLedgerTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  Ledger = Pando::Cluster::Generations::ChangedState
  WORDS = "nice 0 -> 7. Put it back."
  FOUND = ["refused", "", "error", "nice", "nice 0 -> 7", "Put it back."].join("\n").freeze
  LAZY = ["refused", "abc1", "warning", "env TZ", "TZ set", "Put it back."].join("\n").freeze

  def test_another_worker_is_asked_and_the_refork_goes_on
    booted(workers: 2)
    first = asked
    decline(first)

    refute_equal(first, generations.upcoming.source)
    reason = events("source.changed").last[:reason]
    assert_equal("the worker in slot #{first.slot} must not be forked: #{WORDS}", reason)
    assert_predicate(first, :ready?)
    cluster.settle
    assert_equal([1, 1], cluster.generations_of_workers)
    assert_empty(events("refork.refused") + events("generation.discarded") + events("fork.failed"))
    assert_nil(generations.changed_state.refusal)
  end

  def test_where_there_is_no_other_it_is_refused_in_those_words_and_the_worker_replaced
    booted(workers: 1)
    worker = asked
    decline(worker)

    assert_nil(generations.upcoming)
    assert_match(/slot 0\) must not be forked: #{Regexp.escape(WORDS)}\z/, refused.last)
    assert_equal([[0, WORDS]], generations.changed_state.explain.map { |one| one.values_at(:slot, :reason) })
    refute(generations.refork("test"))
    assert_equal(WORDS, refused.last)
    cluster.settle

    assert_predicate(worker, :gone?)
    assert_equal(Ledger::REASON, events("worker.leaving").last[:reason])
    assert_empty(generations.changed_state.explain)
    assert(generations.refork("test"))
  end

  def test_they_are_not_all_replaced_at_once_again_and_again
    booted(workers: 3)
    asked
    3.times { decline(generations.upcoming.source) }
    cluster.settle

    assert_equal(2, generations.changed_state.explain.size)
    elapse(Ledger::FIRST + 1)
    cluster.settle
    assert_equal(1, generations.changed_state.explain.size)
    elapse(Ledger::FIRST + 1)
    cluster.settle
    assert_equal(1, generations.changed_state.explain.size)
    elapse(Ledger::FIRST)
    cluster.settle
    assert_empty(generations.changed_state.explain)
  end

  def test_a_dead_mold_is_not_replaced_by_it
    booted(workers: 1)
    cluster.die(cluster.current_mold).turn
    decline(generations.upcoming.source)
    elapse(1)
    cluster.turn

    assert_nil(generations.upcoming.source)
    cluster.settle
    assert_equal([2], cluster.generations_of_workers)
  end

  def test_the_event_is_the_monitor_s
    booted(workers: 2)
    worker = asked
    report(worker, FOUND)
    told = events("finding.reported").last

    assert_equal([:changed_state, :error, "nice", "nice 0 -> 7", "Put it back.", "refused", worker.slot, worker.pid],
                 %i[kind severity subject reason advice action slot pid].map { |name| told[name] })
    report(worker, FOUND.sub("refused", "eaten").sub("error", "lethal"))
    assert_equal([nil, :error], events("finding.reported").last.payload.values_at(:action, :severity))
    report(worker, "refused\n")
    assert_equal(2, events("finding.reported").size)
  end

  # Each worker reports the change, and then the refork is refused for it: four events and more of one fact.
  def test_one_change_that_stops_a_refork_is_one_alarm
    booted(workers: 2)
    asked
    2.times do
      worker = generations.upcoming.source
      report(worker, FOUND)
      decline(worker)
    end

    assert_equal([2, 1, 1], %w[finding.reported source.changed refork.refused].map { |name| events(name).size })
    assert_equal(["finding.reported"], grave)
    report(cluster.worker_in(0), FOUND.sub("0 -> 7", "0 -> 8"))
    assert_equal(["finding.reported"] * 2, grave)
  end

  def test_after_a_refork_that_worked_it_is_news_again
    booted(workers: 2)
    2.times do
      worker = asked
      report(worker, FOUND)
      decline(worker)
      cluster.settle
      elapse(100)
    end

    assert_equal(["finding.reported"] * 2, grave)
  end

  def test_a_refusal_in_other_words_is_told_all_the_same
    booted(workers: 1)
    report(asked, "refused\n\nerror\nnice\n\nPut it back.")
    decline(generations.upcoming.source)

    assert_equal(["finding.reported", "refork.refused"], grave)
  end

  def test_the_others_are_told_of_what_libraries_do_and_are_asked_after_that
    booted(workers: 3)
    worker = asked
    report(worker, LAZY)
    report(worker, LAZY)
    report(worker, LAZY.sub("abc1", "not a token"))
    decline(worker)
    cluster.turn

    assert_equal([0, 1, 1], cluster.roster.ready_workers.map { |one| one.link.orders.count(:state_seen) }.sort)
    assert_equal(0, worker.link.orders.count(:state_seen))
  end

  def test_nor_is_a_newcomer_forgotten_until_another_release_is_there
    booted(workers: 1)
    worker = asked
    report(worker, LAZY)
    decline(worker)
    cluster.settle

    assert_equal(1, cluster.worker_in(0).link.orders.count(:state_seen))
    generations.reload(["new"], [])
    cluster.settle
    cluster.die(cluster.worker_in(0)).settle
    assert_equal(0, cluster.worker_in(0).link.orders.count(:state_seen))
  end

  def test_a_release_that_is_rolled_back_leaves_what_was_known_of_the_one_before
    booted(workers: 1)
    report(asked, FOUND)
    report(generations.upcoming.source, LAZY)
    decline(generations.upcoming.source)
    cluster.settle
    reload_watched
    report(cluster.worker_in(0), LAZY.sub("abc1", "abc2").sub("TZ set", "LANG set"))
    generations.roll_back("test")
    cluster.settle

    assert_equal(["abc1"], tokens_told(cluster.worker_in(0)))
    assert(generations.changed_state.told?("nice 0 -> 7"))
    refute(generations.changed_state.told?("LANG set"))
  end

  private

  # @return [Array<String>] the changes that the worker has been told of
  def tokens_told(worker) = worker.link.messages.select { |one| one.kind == :state_seen }.map(&:text)

  # Events above the level of mere information.
  def grave
    @events.reject { |event| Pando::Events::Catalogue.level_of(event) == :info }.map(&:name)
  end

  # @return [Child] the worker that is to fork the next mold
  def asked
    assert(generations.refork("test"))
    generations.upcoming.source
  end

  def report(worker, text) = cluster.child_events.state_reported(worker, text)

  def decline(worker)
    mold = generations.upcoming.mold

    assert_same(worker, mold.source)
    cluster.child_events.fork_declined(mold, WORDS)
  end
end
