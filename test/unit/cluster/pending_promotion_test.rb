# frozen_string_literal: true

require "test_helper"
require "pando/cluster/fork_order"
require "pando/cluster/link"
require "pando/cluster/message"
require "pando/cluster/pending_promotion"
require_relative "support/clock"

# A worker that is told to fork the next mold, and whose work must rest first.
class ClusterRestTest < Minitest::Test
  include ClusterSupport::Clock

  # Notes what the worker tells the monitor.
  class Worker
    attr_reader :reports
    attr_accessor :leaving

    def initialize = @reports = []
    def leaving? = !!leaving
    def report(kind, **more) = @reports << [kind, more]
  end

  # Rests when it is told to.
  class Work
    attr_accessor :resting
    attr_reader :begun_again

    def initialize = @begun_again = 0
    def rest? = !!resting
    def patience = 5.0
    def go_on = @begun_again += 1
  end

  def setup
    super
    @worker = Worker.new
    @work = Work.new
    @rest = Pando::Cluster::PendingPromotion.new(@worker, @work)
    @theirs, @ours = Pando::Cluster::Link.pair
    @order = Pando::Cluster::ForkOrder.new(Pando::Cluster::Message.new(:promote, role: :mold, seat: 7, generation: 3),
                                           @ours)
  end

  def teardown
    [@theirs, @ours].each { |link| link.close unless link.closed? }
    super
  end

  def test_it_is_carried_out_as_soon_as_the_work_rests
    @rest.begin(@order)
    assert_nil @rest.order
    @work.resting = true

    assert_same @order, @rest.order
    assert_nil @rest.order
    assert_equal 0, @work.begun_again
  end

  def test_it_is_due_when_there_is_nothing_left_to_wait_for
    refute @rest.due?
    @rest.begin(@order)
    refute @rest.due?
    @work.resting = true
    assert @rest.due?

    @worker.leaving = true
    refute @rest.due?
    @worker.leaving = false
    @theirs.close
    refute @rest.due?
  end

  def test_the_work_goes_on_when_the_fork_is_done
    @work.resting = true
    @rest.begin(@order)
    @rest.order
    2.times { @rest.over }

    assert_equal 1, @work.begun_again
  end

  def test_meanwhile_it_is_looked_at_often
    assert_in_delta 0.5, @rest.pace(0.5)
    @rest.begin(@order)

    assert_operator @rest.pace(0.5), :<, 0.1
  end

  def test_after_its_patience_it_is_refused
    @rest.begin(@order)
    elapse(4.9)
    assert_nil @rest.order
    assert_empty @worker.reports
    elapse(0.2)

    assert_nil @rest.order
    assert_equal [[:fork_refused, { seat: 7, text: "its jobs did not end within 5.0 s" }]], @worker.reports
    assert_equal 1, @work.begun_again
    assert_predicate @ours, :closed?
  end

  def test_an_order_that_was_given_up_is_forgotten
    @rest.begin(@order)
    @theirs.close

    assert_nil @rest.order
    assert_empty @worker.reports
    assert_equal 1, @work.begun_again
  end

  def test_who_leaves_does_not_fork
    @rest.begin(@order)
    @work.resting = @worker.leaving = true

    assert_nil @rest.order
    assert_predicate @ours, :closed?
  end
end
