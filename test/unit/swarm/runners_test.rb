# frozen_string_literal: true

require "test_helper"
require "pando/config/node_line"
require "pando/swarm"
require "pando/swarm/runners"

class BrokerWatchTest < Minitest::Test
  def setup
    @events = []
    @subscription = Pando::Events.subscribe { |event| @events << event if event.name.start_with?("broker.") }
    kind = Pando::Config::NodeKind.new(name: "bunny")
    @watch = Pando::Swarm::BrokerWatch.new(Pando::Swarm::Node.new(kind, 3))
  end

  def teardown
    Pando::Events.unsubscribe(@subscription)
  end

  def test_each_loss_and_each_return_is_reported_once
    3.times { @watch.lost(IOError.new("closed")) }
    assert @watch.found
    refute @watch.found
    @watch.lost(IOError.new("again"))

    assert_equal %w[broker.lost broker.found broker.lost], @events.map(&:name)
    assert_equal({ node: "bunny", slot: 3, pid: Process.pid, reason: "closed (IOError)" }, @events.first.payload)
    assert_kind_of Float, @events[1][:seconds]
  end

  def test_the_pauses_grow_and_start_again
    pauses = Array.new(7) { @watch.lost(IOError.new) }
    assert_equal [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0], pauses
    @watch.found

    assert_in_delta 0.25, @watch.lost(IOError.new)
  end
end

class StartSignalTest < Minitest::Test
  def setup
    @signal = Pando::Swarm::StartSignal.new
  end

  def test_success_ends_the_wait
    refute_predicate @signal, :set?
    thread = Thread.new { @signal.wait }
    @signal.set

    assert_nil thread.value
    assert_predicate @signal, :set?
  end

  def test_an_error_is_raised_in_the_waiting_thread
    @signal.set(Errno::ECONNREFUSED.new)

    assert_raises(Errno::ECONNREFUSED) { @signal.wait }
  end

  def test_only_the_first_outcome_counts
    @signal.set
    @signal.set(RuntimeError.new("too late"))

    assert_nil @signal.wait
  end
end
