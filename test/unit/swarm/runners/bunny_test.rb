# frozen_string_literal: true

require "test_helper"
require "pando/config/node_line"
require "pando/swarm"
require "pando/swarm/runners/bunny"

# The rest is tested with RabbitMQ, see test/integration/swarm.
class BunnySettingsTest < Minitest::Test
  class Consumer
    def call(message) = message
  end

  def test_what_holds_where_nothing_is_said
    settings = settings(consumer: "BunnySettingsTest::Consumer")

    assert_equal [3, :reject, %w[mails]], [settings.prefetch, settings.on_error, settings.queues]
    assert_instance_of Consumer, settings.handler
    refute_same settings.handler, settings.handler
  end

  def test_an_object_is_taken_for_all_messages
    consumer = Consumer.new

    assert_same consumer, settings(consumer: consumer).handler
  end

  def test_a_consumer_that_is_not_there_is_told
    assert_raises(NameError) { settings(consumer: "BunnySettingsTest::Missing").consumer }
  end

  def test_where_it_connects_to
    ours = { automatically_recover: false }
    url, options = settings(consumer: "X", connection: "amqp://host").connection(ours)
    assert_equal ["amqp://host", false, 5], [url, options[:automatically_recover], options[:connection_timeout]]

    hash = { host: "host", connection_timeout: 9, automatically_recover: true }
    given, last_word = settings(consumer: "X", connection: hash).connection(ours)
    assert_equal ["host", 9], given.values_at(:host, :connection_timeout)
    assert_equal ours, last_word # Bunny merges it into the first
  end

  private

  def settings(options)
    kind = Pando::Config::NodeKind.new(name: "bunny", concurrency: 3, queues: %w[mails], options: options)
    Pando::Swarm::Runners::Bunny::Settings.new(Pando::Swarm::Node.new(kind, 0))
  end
end

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

  # Such as messages that the broker has taken back.
  def test_items_that_are_not_wanted_any_more_are_dropped_and_not_counted
    go = Queue.new
    seen = Queue.new
    unwanted = []
    pool(1, unwanted: ->(item) { unwanted.include?(item) }) { |item| (seen << item) && go.pop }
    5.times { |item| @pool.push(item) }
    wait_until { @pool.in_progress == 1 }
    unwanted.push(1, 3)
    3.times { go << true }
    wait_until { @pool.done == 3 }

    assert_equal [0, 2, 4], Array.new(3) { seen.pop }
    assert_equal [0, 0], [@pool.failed, @pool.in_progress]
    unwanted << 5
    @pool.push(5)
    assert_empty @pool.quiet
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

  def pool(size, **how, &work) = @pool = Pando::Swarm::Runners::Bunny::ThreadPool.new(size, "pool", **how, &work)
  def named(beginning) = Thread.list.select { |thread| thread.name&.start_with?(beginning) }
end

class BunnyThreadTrackerTest < Minitest::Test
  def setup
    @tracker = Pando::Swarm::Runners::Bunny::ThreadTracker.new
  end

  def teardown
    @tracker.kill_all(10)
  end

  def test_threads_of_tracked_threads_are_tracked
    inner = Queue.new
    outer = @tracker.start("outer") do
      inner << Thread.new { Thread.new { sleep }.tap { |one| inner << one }.join }
      sleep
    end
    threads = [outer, inner.pop, inner.pop]

    assert_equal "outer", outer.name
    assert_equal threads.map(&:object_id).sort, @tracker.threads.map(&:object_id).sort
    assert @tracker.kill_all(10)
    assert(threads.none?(&:alive?))
    assert_empty @tracker.threads
  end

  def test_other_threads_are_left_alone
    other = Thread.new { sleep }
    @tracker.start("one") { sleep }
    @tracker.kill_all(10)

    assert_predicate other, :alive?
  ensure
    other.kill.join
  end

  def test_a_thread_that_dies_of_an_error_is_gone
    thread = @tracker.start("faulty") { (Thread.current.report_on_exception = false) || raise("no") }
    wait_until { !thread.alive? }

    assert @tracker.kill_all(10)
  end

  def test_a_thread_that_does_not_end_is_reported
    held = Mutex.new
    begun = Queue.new
    stubborn = @tracker.start("stubborn") do
      Thread.handle_interrupt(Object => :never) do
        begun << true
        held.synchronize { nil }
      end
    end
    held.synchronize do
      begun.pop
      refute @tracker.kill_all(0.05)
    end
    wait_until { !stubborn.alive? }
  end
end
