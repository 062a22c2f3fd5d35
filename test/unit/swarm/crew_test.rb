# frozen_string_literal: true

require "test_helper"
require "pando/swarm/crew"

class CrewTest < Minitest::Test
  def teardown
    @crew&.stop(10)
  end

  def test_each_item_is_worked_at_once
    seen = Queue.new
    crew(3) { |item| seen << item }
    assert(Array.new(20) { |item| @crew.give(item) }.all?)
    wait_until { @crew.done == 20 }

    assert_equal (0...20).to_a, Array.new(20) { seen.pop }.sort
    assert_equal [0, 0, false], [@crew.failed, @crew.in_progress, @crew.busy?]
  end

  def test_nil_and_false_are_items_too
    seen = Queue.new
    crew(1) { |item| seen << item }
    [nil, false].each { |item| @crew.give(item) }

    assert_equal [nil, false], [seen.pop, seen.pop]
  end

  def test_what_fails_is_counted_and_ends_no_thread
    crew(1, &:call)
    [-> { false }, -> { raise "no" }, -> { exit }, -> { raise Interrupt }, -> {}, lambda {
      true
    }].each { |one| @crew.give(one) }
    wait_until { @crew.done == 6 }

    assert_equal 4, @crew.failed
    assert_predicate @crew, :complete?
  end

  def test_quiet_gives_back_what_was_not_begun
    go = Queue.new
    crew(2) { |_| go.pop }
    5.times { |item| @crew.give(item) }
    wait_until { @crew.in_progress == 2 }

    assert_equal [2, 3, 4], @crew.quiet
    assert_empty @crew.quiet
    refute @crew.give(6)
    assert_predicate @crew, :busy?
    2.times { go << true }
    wait_until { @crew.done == 2 }

    refute_predicate @crew, :busy?
  end

  def test_stop_ends_the_threads_and_breaks_off_what_runs
    crew(2) { |item| sleep if item == :long }
    @crew.give(:long)
    wait_until { @crew.busy? }
    threads = named("crew")

    assert_equal ["crew 0", "crew 1"], threads.map(&:name).sort
    assert @crew.stop(10)
    assert(threads.none?(&:alive?))
    assert_equal [0, false], [@crew.done, @crew.busy?]
    assert_predicate @crew, :complete?
  end

  def test_a_job_that_ends_its_thread_is_noticed
    crew(2) { |_| Thread.exit }
    @crew.give(1)
    wait_until { !@crew.complete? }

    assert_equal [1, 1, 0], [@crew.done, @crew.failed, @crew.in_progress]
  end

  private

  def crew(size, &work) = @crew = Pando::Swarm::Crew.new(size, "crew", &work)
  def named(beginning) = Thread.list.select { |thread| thread.name&.start_with?(beginning) }
end
