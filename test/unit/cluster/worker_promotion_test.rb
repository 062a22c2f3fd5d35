# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/clock"

# A worker that is told to fork the next mold waits until its work rests.
class ClusterWorkerPromotionTest < Minitest::Test
  include ClusterSupport::Clock

  # Notes what it tells the monitor.
  class Worker < Pando::Cluster::Worker
    attr_reader :reports
    attr_accessor :leaving

    public :begin_promotion, :take_promotion, :end_promotion, :promotion_due?, :sleep_time

    def initialize(work) # rubocop:disable Lint/MissingSuper
      @reports = []
      @work = work
    end

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
    def pulse = nil
    def go_on = @begun_again += 1
  end

  def setup
    super
    @work = Work.new
    @worker = Worker.new(@work)
    @theirs, @ours = Pando::Cluster::Link.pair
    @order = Pando::Cluster::ForkOrder.new(Pando::Cluster::Message.new(:promote, role: :mold, seat: 7, generation: 3),
                                           @ours)
  end

  def teardown
    [@theirs, @ours].each { |link| link.close unless link.closed? }
    super
  end

  def test_the_monitor_may_allow_less_time_than_the_work
    order = Pando::Cluster::ForkOrder.new(Pando::Cluster::Message.new(:promote, role: :mold, seat: 7, lane: 2), @ours)
    @worker.begin_promotion(order)
    elapse(1)
    assert_nil @worker.take_promotion
    assert_empty @worker.reports
    elapse(1)
    @worker.take_promotion

    assert_equal([[:fork_refused, { seat: 7, text: "its running work did not end within 2 s" }]], @worker.reports)
    assert_nil order.pool
  end

  def test_it_is_carried_out_as_soon_as_the_work_rests
    @worker.begin_promotion(@order)
    assert_nil @worker.take_promotion
    @work.resting = true

    assert_same @order, @worker.take_promotion
    assert_nil @worker.take_promotion
    assert_equal 0, @work.begun_again
  end

  def test_it_is_due_when_there_is_nothing_left_to_wait_for
    refute @worker.promotion_due?
    @worker.begin_promotion(@order)
    refute @worker.promotion_due?
    @work.resting = true
    assert @worker.promotion_due?

    @worker.leaving = true
    refute @worker.promotion_due?
    @worker.leaving = false
    @theirs.close
    refute @worker.promotion_due?
  end

  def test_the_work_goes_on_when_the_fork_is_done
    @work.resting = true
    @worker.begin_promotion(@order)
    @worker.take_promotion
    2.times { @worker.end_promotion }

    assert_equal 1, @work.begun_again
  end

  def test_meanwhile_it_is_looked_at_often
    assert_in_delta 0.5, @worker.sleep_time
    @worker.begin_promotion(@order)

    assert_operator @worker.sleep_time, :<, 0.1
  end

  def test_after_its_patience_it_is_refused
    @worker.begin_promotion(@order)
    elapse(4.9)
    assert_nil @worker.take_promotion
    assert_empty @worker.reports
    elapse(0.2)

    assert_nil @worker.take_promotion
    assert_equal [[:fork_refused, { seat: 7, text: "its running work did not end within 5.0 s" }]], @worker.reports
    assert_equal 1, @work.begun_again
    assert_predicate @ours, :closed?
  end

  def test_an_order_that_was_given_up_is_forgotten
    @worker.begin_promotion(@order)
    @theirs.close

    assert_nil @worker.take_promotion
    assert_empty @worker.reports
    assert_equal 1, @work.begun_again
  end

  def test_who_leaves_does_not_fork
    @worker.begin_promotion(@order)
    @work.resting = @worker.leaving = true

    assert_nil @worker.take_promotion
    assert_predicate @ours, :closed?
  end
end
