# frozen_string_literal: true

require "test_helper"
require "pando/swarm/broker_watch"
require "pando/config/node_kind"
require "pando/swarm"

class BrokerWatchTest < Minitest::Test
  def setup
    @told = []
    @subscription = Pando::Events.subscribe { |event| @told << event if event.name.start_with?("broker.") }
    kind = Pando::Config::NodeKind.new(name: "bunny")
    @watch = Pando::Swarm::BrokerWatch.new(Pando::Swarm::Node.new(kind, 3))
  end

  def teardown
    Pando::Events.unsubscribe(@subscription)
  end

  def test_each_loss_is_told_once_and_each_return
    3.times { @watch.lost(IOError.new("closed")) }
    assert @watch.found
    refute @watch.found
    @watch.lost(IOError.new("again"))

    assert_equal %w[broker.lost broker.found broker.lost], @told.map(&:name)
    assert_equal({ node: "bunny", slot: 3, pid: Process.pid, reason: "closed (IOError)" }, @told.first.payload)
    assert_kind_of Float, @told[1][:seconds]
  end

  def test_the_pauses_grow_and_begin_anew
    pauses = Array.new(7) { @watch.lost(IOError.new) }
    assert_equal [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0], pauses
    @watch.found

    assert_in_delta 0.25, @watch.lost(IOError.new)
  end
end
