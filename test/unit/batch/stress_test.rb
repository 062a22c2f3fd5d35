# frozen_string_literal: true

require "test_helper"
require "pando/batch"

# Order and completeness, whatever the threads come to.
class BatchStressTest < Minitest::Test
  ITEMS = 600
  KEYS = 7
  THREADS = 5
  PATIENCE = 60

  # Notes which thread is in a key's section, and in what order its items end.
  class Sections
    attr_reader :order, :collisions

    def initialize
      @lock = Mutex.new
      @inside = Hash.new(0)
      @order = Hash.new { |orders, key| orders[key] = [] }
      @collisions = 0
    end

    # A thread that is killed leaves the section first; it is killed within it or not at all.
    def enter(key, item, &work)
      Thread.handle_interrupt(Object => :never) do
        @lock.synchronize { @collisions += 1 if (@inside[key] += 1) > 1 }
        begin
          Thread.handle_interrupt(Object => :immediate, &work)
          @lock.synchronize { @order[key] << item }
        ensure
          @lock.synchronize { @inside[key] -= 1 }
        end
      end
    end
  end

  def setup
    @sections = Sections.new
    @random = Random.new(Minitest.seed || 1)
    @delays = Array.new(ITEMS) { @random.rand < 0.2 ? @random.rand(0.002) : nil }
  end

  def key(item) = item % KEYS

  def work(item)
    @sections.enter(key(item), item) do
      pause(@delays[item]) if @delays[item]
      yield if block_given?
    end
  end

  def expected = (0...ITEMS).group_by { |item| key(item) }

  def test_each_item_once_and_each_key_in_its_order
    batch = Pando::Batch.new(threads: THREADS, capacity: 30)
    result = batch.run(0...ITEMS, key: method(:key), timeout: PATIENCE) { |item| work(item) }

    assert_predicate result, :success?
    assert_equal expected, @sections.order.sort.to_h
    assert_equal 0, @sections.collisions
    assert_empty batch.stop
  end

  def test_errors_and_their_waits_do_not_change_the_order
    tries = Hash.new(0)
    batch = Pando::Batch.new(threads: THREADS, capacity: 50, attempts: 3, backoff: 0.0005..0.002)
    result = batch.run(0...ITEMS, key: method(:key), timeout: PATIENCE) do |item|
      work(item) { raise "again" if (item % 5).zero? && (tries[item] += 1) < 3 }
    end

    assert_predicate result, :success?
    assert_equal expected, @sections.order.sort.to_h
    assert_equal 0, @sections.collisions
    assert_empty batch.stop
  end

  def test_several_producers_and_items_without_a_key
    seen = Thread::Queue.new
    batch = Pando::Batch.new(threads: THREADS, capacity: 3) { |item| seen << item }
    producers = Array.new(4) do |number|
      Thread.new { (ITEMS / 4).times { |item| batch.push([number, item], key: (number if number.even?)) } }
    end
    producers.each { |thread| thread.join(PATIENCE) || flunk("a producer hangs") }

    assert batch.wait(PATIENCE)
    items = Array.new(seen.size) { seen.pop }
    assert_equal ITEMS, items.uniq.size
    assert_equal ITEMS, items.size
    [0, 2].each do |number|
      theirs = items.select { |producer, _| producer == number }

      assert_equal((0...(ITEMS / 4)).to_a, theirs.map(&:last))
    end
    assert_empty batch.stop
  end

  # An item that was in the hands of a killed thread is done again, before those of its key that follow.
  def test_killed_threads_lose_nothing_and_keep_the_order
    before = Thread.list
    batch = Pando::Batch.new(threads: THREADS, capacity: 40, attempts: 100, backoff: 0..0.001)
    killer = Thread.new { kill_at_random(before) }
    result = batch.run(0...ITEMS, key: method(:key), timeout: PATIENCE) { |item| work(item) }
    killer.kill.join

    assert_predicate result, :success?
    assert_equal expected, @sections.order.sort.to_h.transform_values(&:uniq)
    assert_equal 0, @sections.collisions
    wait_until(timeout: PATIENCE) { (Thread.list - before).size.between?(THREADS, THREADS + 1) } # with the clock's
    assert_empty batch.stop
    assert_empty Thread.list - before
  end

  def kill_at_random(before)
    random = Random.new(1)
    loop do
      ((Thread.list - before) - [Thread.current]).sample(random: random)&.kill
      pause(0.001)
    end
  end
end
