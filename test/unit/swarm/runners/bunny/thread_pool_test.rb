# frozen_string_literal: true

require "test_helper"
require "pando/swarm/runners/bunny/threads"

class BunnyThreadPoolTest < Minitest::Test
  def teardown
    @pool&.stop(10)
  end

  def test_each_item_is_processed_once
    seen = Queue.new
    pool(3) { |item| seen << item }
    assert(Array.new(20) { |item| @pool.push(item) }.all?)
    wait_until { @pool.done == 20 }

    assert_equal (0...20).to_a, Array.new(20) { seen.pop }.sort
    assert_equal [0, 0, false], [@pool.failed, @pool.in_progress, @pool.busy?]
  end

  def test_nil_and_false_are_items_too
    seen = Queue.new
    pool(1) { |item| seen << item }
    [nil, false].each { |item| @pool.push(item) }

    assert_equal [nil, false], [seen.pop, seen.pop]
  end

  def test_failures_are_counted_and_end_no_thread
    pool(1, &:call)
    [-> { false }, -> { raise "no" }, -> { exit }, -> { raise Interrupt }, -> {}, lambda {
      true
    }].each { |one| @pool.push(one) }
    wait_until { @pool.done == 6 }

    assert_equal 4, @pool.failed
    assert_predicate @pool, :all_alive?
  end

  def test_quiet_gives_back_items_that_have_not_begun
    go = Queue.new
    pool(2) { |_| go.pop }
    5.times { |item| @pool.push(item) }
    wait_until { @pool.in_progress == 2 }

    assert_equal [2, 3, 4], @pool.quiet
    assert_empty @pool.quiet
    refute @pool.push(6)
    assert_predicate @pool, :busy?
    2.times { go << true }
    wait_until { @pool.done == 2 }

    refute_predicate @pool, :busy?
  end

  def test_stop_ends_the_threads_and_breaks_off_running_items
    pool(2) { |item| sleep if item == :long }
    @pool.push(:long)
    wait_until { @pool.busy? }
    threads = named("pool")

    assert_equal ["pool 0", "pool 1"], threads.map(&:name).sort
    assert @pool.stop(10)
    assert(threads.none?(&:alive?))
    assert_equal [0, false], [@pool.done, @pool.busy?]
    assert_predicate @pool, :all_alive?
  end

  def test_a_job_that_ends_its_thread_is_noticed
    pool(2) { |_| Thread.exit }
    @pool.push(1)
    wait_until { !@pool.all_alive? }

    assert_equal [1, 1, 0], [@pool.done, @pool.failed, @pool.in_progress]
  end

  private

  def pool(size, &work) = @pool = Pando::Swarm::Runners::Bunny::ThreadPool.new(size, "pool", &work)
  def named(beginning) = Thread.list.select { |thread| thread.name&.start_with?(beginning) }
end
