# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/refork/prefault"
require_relative "../support/simulation"

class PrefaultOrdersTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  Orders = Pando::Cluster::Generations::PrefaultOrders

  def setup
    super
    @cluster = ClusterSupport::Simulation.new
    @cluster.boot
    @hot_sets = hot_sets
  end

  def hot_sets(prefault: true)
    options = ClusterSupport.options(prefault: prefault)
    Orders.new(@cluster.roster, @cluster.generations, options)
  end

  def mold = @cluster.current_mold
  def worker(slot = 0) = @cluster.worker_in(slot)
  def orders(mold) = mold.link.orders.count(:observe)

  # Its pid is one that the kernel knows.
  def look(sets = @hot_sets, pid: Process.pid, supported: true)
    Pando::Sys::HotSet.stub(:supported?, supported) do
      @cluster.roster.ready_workers.inject(-> { sets.reconcile }) do |inner, one|
        -> { one.stub(:pid, pid) { inner.call } }
      end.call
    end
  end

  def test_a_mold_looks_once_at_a_worker_that_has_served_enough
    @cluster.serve(worker, Orders::ENOUGH - 1)
    look

    assert_equal 0, orders(mold)
    @cluster.serve(worker)
    2.times { look }

    assert_equal 1, orders(mold)
    assert_predicate @cluster.generations.current, :observed?
  end

  def test_it_looks_before_the_others_are_forked
    next_generation
    upcoming = @cluster.upcoming_mold
    @cluster.serve(canary, Orders::LEAST - 1)
    look

    assert_equal 0, orders(upcoming)
    @cluster.serve(canary)
    look
    assert_equal 0, orders(upcoming), "there is time until they are"
    @cluster.generations.upcoming.enter(:rolling)
    look

    assert_equal 1, orders(upcoming)
  end

  def test_who_is_gone_is_not_looked_at
    @cluster.serve(worker, Orders::ENOUGH)
    look(pid: 2**30)

    refute_predicate @cluster.generations.current, :observed?
    assert_empty events("prefault.unavailable")
  end

  def test_an_order_that_does_not_arrive_is_given_again
    @cluster.serve(worker, Orders::ENOUGH)
    mold.link.deaf = true
    look
    mold.link.deaf = false
    look

    assert_equal 1, orders(mold)
  end

  def test_what_the_kernel_lacks_is_said_once
    @cluster.serve(worker, Orders::ENOUGH)
    2.times { look(supported: false) }

    assert_equal 1, events("prefault.unavailable").size
    assert_equal 0, orders(mold)
  end

  def test_what_may_not_be_read_is_said_once
    @cluster.serve(worker, Orders::ENOUGH)
    File.stub(:open, ->(*) { raise Errno::EACCES, "pagemap" }) { 2.times { look } }

    assert_equal 1, events("prefault.unavailable").size
    assert_equal 0, orders(mold)
  end

  def test_the_mold_gets_the_pagemap_and_the_memory
    @cluster.serve(worker, Orders::ENOUGH)
    Pando::Refork::Prefault.stub(:may_guess?, true) { look }

    assert_equal %w[pagemap mem], handed_over(mold)
  end

  def test_memory_that_may_not_be_read_is_not_handed_over
    open = File.method(:open)
    @cluster.serve(worker, Orders::ENOUGH)
    refusing = ->(path, *rest) { path.end_with?("/mem") ? raise(Errno::EACCES) : open.call(path, *rest) }
    Pando::Refork::Prefault.stub(:may_guess?, true) { File.stub(:open, refusing) { look } }

    assert_equal %w[pagemap], handed_over(mold)
    assert_empty events("prefault.unavailable")
  end

  def test_memory_is_not_opened_where_no_worker_gets_a_guess
    @cluster.serve(worker, Orders::ENOUGH)
    Pando::Refork::Prefault.stub(:may_guess?, false) { look }

    assert_equal %w[pagemap], handed_over(mold)
  end

  # The monitor tries again when it has descriptors.
  def test_a_lack_of_descriptors_leaves_none_open
    open = File.method(:open)
    opened = []
    @cluster.serve(worker, Orders::ENOUGH)
    refusing = lambda do |path, *rest|
      path.end_with?("/mem") ? raise(Errno::EMFILE) : open.call(path, *rest).tap { |file| opened << file }
    end

    assert_raises(Errno::EMFILE) do
      Pando::Refork::Prefault.stub(:may_guess?, true) { File.stub(:open, refusing) { look } }
    end
    assert_predicate opened.last, :closed?
    refute_predicate @cluster.generations.current, :observed?
  end

  def test_off
    @cluster.serve(worker, Orders::ENOUGH)
    look(hot_sets(prefault: false))

    assert_equal 0, orders(mold)
  end

  private

  # @return [Array<String>] the names of the files, which the monitor has closed
  def handed_over(mold)
    files = mold.link.descriptors.last

    assert(files.all?(&:closed?))
    files.map { |file| File.basename(file.path) }
  end

  def next_generation
    @cluster.generations.refork("a test")
    @cluster.ready(@cluster.upcoming_mold)
    @cluster.turn
    @cluster.starting.each { |child| start_only(child) }
  end

  # It serves; that its generation is to roll is said by the test.
  def start_only(child)
    @cluster.adopt(child)
    child.row.claim(0, child.slot, child.generation)
    child.become_ready
  end

  def canary = @cluster.roster.ready_workers.max_by(&:generation)
end
