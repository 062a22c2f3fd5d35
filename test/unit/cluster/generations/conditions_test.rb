# frozen_string_literal: true

require "test_helper"
require_relative "../support/fakes"
require "pando/cluster/monitor"

# Whether this is a good moment for an automatic refork.
class ConditionsTest < Minitest::Test
  Cluster = Struct.new(:reload, :drain, :memory, :reactors, :listeners, :roster)
  Answer = Struct.new(:under_way?, :begun?, :short?, :state, :waiting)

  def setup
    @roster = ClusterSupport.roster
    @answer = Answer.new(false, false, false, { waiting: 0 }, { "a" => 0, "unix:b" => nil })
    @pressure = nil
  end

  def conditions
    cluster = Cluster.new(*[@answer] * 5, @roster)
    Pando::Cluster::Generations::Conditions.new(cluster, pressure: -> { @pressure })
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
    @answer.state = { waiting: 1 }
    refute_predicate conditions, :quiet?
    @answer.state = nil

    assert_predicate conditions, :quiet?
    @answer.waiting = { "a" => 2 }
    refute_predicate conditions, :quiet?
  end
end
