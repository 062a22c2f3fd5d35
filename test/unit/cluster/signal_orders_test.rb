# frozen_string_literal: true

require "test_helper"
require "pando/cluster/signals"
require_relative "support/simulation"

# What ^C means while a request runs, and before and after that.
class ClusterSignalOrdersTest < Minitest::Test
  include ClusterSupport::Clock

  # @!attribute had [Boolean]
  # @!attribute prompt [Boolean]
  Terminal = Struct.new(:had, :prompt) do
    def had? = had
    def prompt? = prompt
  end

  Cluster = Struct.new(:roster, :shutdown)
  Roster = Struct.new(:workers)
  Worker = Struct.new(:row)
  Row = Struct.new(:busy_since)

  # Stands for Shutdown.
  class Stop
    attr_reader :told

    def initialize = @told = []
    def begun? = @told.any?
    def quickly(signal) = @told << [:quickly, signal]
    def at_once(signal) = @told << [:at_once, signal]
  end

  def setup
    super
    @row = Row.new(now)
    @terminal = Terminal.new(true, false)
    @stop = Stop.new
    @orders = Pando::Cluster::SignalOrders.new(Cluster.new(Roster.new([Worker.new(@row)]), @stop), terminal: @terminal)
  end

  def look(seconds)
    elapse(seconds)
    @orders.proceed
  end

  def test_at_a_prompt_it_is_the_debuggers
    @terminal.prompt = true
    @orders.obey("INT")

    assert_nil @orders.due
    assert_empty @stop.told
  end

  def test_a_prompt_that_comes_back_after_its_line
    @orders.obey("INT")
    look(@orders.due - now)
    @terminal.prompt = true
    look(@orders.due - now)

    assert_nil @orders.due
    look(1)

    assert_empty @stop.told
  end

  def test_a_request_without_a_prompt_is_interrupted_soon
    @orders.obey("INT")

    assert_empty @stop.told
    look(Pando::Cluster::SignalOrders::DOUBT + 0.01)

    assert_equal [[:quickly, "INT"]], @stop.told
    assert_nil @orders.due
  end

  def test_a_request_that_ends_leaves_no_doubt
    @orders.obey("INT")
    @row.busy_since = nil
    look(@orders.due - now)

    assert_equal [[:quickly, "INT"]], @stop.told
  end

  def test_the_second_one_is_obeyed_at_once
    2.times { @orders.obey("INT") }

    assert_equal [[:quickly, "INT"]], @stop.told
    @orders.obey("INT")

    assert_equal [:at_once, "INT"], @stop.told.last
  end

  def test_without_a_request_it_is_obeyed_at_once
    @row.busy_since = nil
    @orders.obey("INT")

    assert_equal [[:quickly, "INT"]], @stop.told
  end

  def test_without_a_terminal_it_is_obeyed_at_once
    @terminal.had = false
    @orders.obey("INT")

    assert_equal [[:quickly, "INT"]], @stop.told
  end
end
