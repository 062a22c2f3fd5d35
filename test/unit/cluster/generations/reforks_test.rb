# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "pando/refork"
require_relative "../support/generations_case"
require_relative "../support/fakes"

# Which worker is asked to fork the next mold.
class ClusterSourcesTest < Minitest::Test
  Worker = Struct.new(:name, :requests, :connections, :excluded_as_source, :engaged, :unsafe) do
    def ready? = true
    def fork_safe? = !unsafe
    def declined_while_busy? = false
    def condemned? = false
    def declined = nil
    def engaged? = !!engaged
    def excluded_as_source? = !!excluded_as_source
  end
  Roster = Struct.new(:ready_workers)

  # Stands for a Refork::Policy.
  class Policy
    def manual? = true
    def choose(workers) = workers.max_by(&:requests)
  end

  # There are none.
  class LostThreads
    def heal_cold? = false
    def fit?(_worker) = true
  end

  Generations = Struct.new(:lost_threads) do
    def outdated?(worker) = worker.requests.zero?
  end

  def reforks_of(*workers, **options)
    Pando::Cluster::Generations::Reforks.new(Roster.new(workers), Policy.new, Generations.new(LostThreads.new), nil,
                                             ClusterSupport.options(**options))
  end

  def best_of(...) = reforks_of(...).best_source&.name

  def test_never_one_whose_connections_are_to_be_kept
    assert_equal :b, best_of(Worker.new(:a, 100, 5), Worker.new(:b, 1, 0), drain: 600.0)
    assert_nil best_of(Worker.new(:a, 100, 5), drain: 600.0)
  end

  def test_one_without_connections_comes_before_a_warmer_one
    assert_equal :b, best_of(Worker.new(:a, 100, 5), Worker.new(:b, 60, 0), Worker.new(:c, 50, 0))
  end

  def test_but_not_one_that_has_served_much_less
    assert_equal :a, best_of(Worker.new(:a, 100, 5), Worker.new(:b, 49, 0))
  end

  def test_if_all_have_some_one_is_chosen_all_the_same
    assert_equal :a, best_of(Worker.new(:a, 100, 5), Worker.new(:b, 60, 1))
  end

  def test_one_that_is_at_a_long_request_is_not_preferred_for_that
    assert_equal :a, best_of(Worker.new(:a, 100, 5), Worker.new(:b, 90, 0, false, true))
  end

  def test_never_an_unsafe_one_nor_one_that_is_to_be_replaced
    assert_equal :b, best_of(Worker.new(:a, 100, 0, false, false, true), Worker.new(:b, 5, 0))
    assert_nil best_of(Worker.new(:a, 100, 0, false, false, true), Worker.new(:b, 0, 0))
  end

  def test_one_whose_mold_has_failed_only_if_all_have
    assert_equal :b, best_of(Worker.new(:a, 100, 0, true), Worker.new(:b, 5, 0))
    assert_equal :a, best_of(Worker.new(:a, 100, 0, true), Worker.new(:b, 5, 0, true))
  end

  # To ask what stands against a refork changes nothing.
  def test_they_are_asked_again_when_a_refork_begins_and_not_before
    worker = Worker.new(:a, 100, 0, true)
    reforks = reforks_of(worker)
    reforks.send(:candidates)
    assert_predicate worker, :excluded_as_source?

    assert_equal :a, reforks.best_source.name
    refute_predicate worker, :excluded_as_source?
  end

  def test_none
    assert_nil best_of
  end
end

# When the monitor must wake up for a policy that measures.
class ClusterReforksDueTest < Minitest::Test
  include ClusterSupport::GenerationsCase

  def measuring(**options)
    booted(**options)
    generations.reforks.policy = Pando::Refork::Auto.new
    cluster.turn
  end

  def test_a_cluster_is_measured_again_and_again
    measuring

    assert_operator generations.due, :>, now
    elapse(generations.due - now)
    cluster.turn
    assert_operator generations.due, :>, now
  end

  def test_a_lone_node_is_not_measured
    measuring(workers: 1, jobs: true)

    assert_nil generations.due
  end

  def test_after_a_refusal_of_the_kernel_nothing_is_measured_before_the_next_try
    measuring
    cluster.spawner.refusing = true
    5.times do
      elapse(3)
      generations.refork("test", asked: false)
    end
    elapse(1)
    cluster.turn

    assert_operator generations.due, :>, now
  end
end

# Whether this is a good moment for an automatic refork.
class ConditionsTest < Minitest::Test
  Pool = Struct.new(:reload, :drain, :memory, :reactors, :listeners, :roster, :number)
  Answer = Struct.new(:under_way?, :begun?, :short?, :queued, :waiting) do
    def waiting_for(pool) = queued&.fetch(pool)
  end

  def setup
    @roster = ClusterSupport.roster
    @answer = Answer.new(false, false, false, [0, 0], { "a" => 0, "unix:b" => nil })
    @pressure = nil
  end

  def conditions
    pool = Pool.new(*[@answer] * 5, @roster, 1)
    Pando::Cluster::Generations::Conditions.new(pool, pressure: -> { @pressure })
  end

  def add_worker(busy:)
    worker = @roster.admit(:worker, @roster.size, 0, ClusterSupport::FakeLink.new, nil)
    worker.become_ready
    worker.row.start_job("GET", "/", nil, nil) if busy
  end

  def test_nothing_speaks_against_it
    assert_nil conditions.obstacle
    @pressure = 10.0

    assert_nil conditions.obstacle
  end

  def test_what_speaks_against_it
    { under_way?: "a reload is under way", begun?: "the server drains", short?: "memory is short" }
      .each do |fact, words|
        @answer[fact] = true
        assert_equal words, conditions.obstacle
        @answer[fact] = false
      end
    @pressure = 10.5

    assert_equal "memory is short (processes wait for it 10.5% of the time)", conditions.obstacle
  end

  def test_it_is_quiet_while_nobody_waits_and_half_of_the_workers_are_idle
    assert_predicate conditions, :quiet?
    [true, false].each { |busy| add_worker(busy: busy) }

    assert_predicate conditions, :quiet?
    add_worker(busy: true)
    refute_predicate conditions, :quiet?
  end

  def test_it_is_not_quiet_while_a_request_waits_behind_the_reactor_or_in_a_listener
    @answer.queued = [0, 1]
    refute_predicate conditions, :quiet?
    @answer.queued = nil

    assert_predicate conditions, :quiet?
    @answer.waiting = { "a" => 2 }
    refute_predicate conditions, :quiet?
  end

  def test_a_request_that_waits_for_another_pool_does_not_matter
    @answer.queued = [1, 0]

    assert_predicate conditions, :quiet?
  end
end
