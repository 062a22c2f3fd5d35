# frozen_string_literal: true

require "test_helper"
require "delegate"
require "pando/refork/collector"
require "pando/sys"
require "support/deferral"
require "support/in_child"

# Young garbage, collected between two jobs.
class CollectorTest < Minitest::Test
  include Support::InChild
  include Support::Deferral

  # In a process of its own, with a heap that Ruby need not collect by itself.
  # @return [Hash] of the collections while jobs were done
  def jobs(count, percent, **manner)
    in_child do
      GC.start
      GC.disable # only what is asked for
      collections { serve(Pando::Refork::Collector.new(percent).tap(&:start), count, **manner) }
    end
  end

  def serve(collector, count, idle: false, objects: 1000)
    count.times do
      objects.times { Object.new }
      collector.between { idle }
    end
  end

  def test_young_garbage_is_collected
    done = jobs(500, 50)

    assert_operator done[:minor_gc_count], :>, 0
    assert_equal 0, done[:major_gc_count]
  end

  def test_where_nothing_is_made_nothing_is_collected
    assert_equal 0, jobs(500, 50, objects: 0)[:minor_gc_count]
  end

  def test_it_is_the_users_to_say
    assert_equal 0, jobs(500, nil)[:minor_gc_count]
  end

  # The first shows what one costs; at one percent the next is a hundred times as far away.
  def test_what_it_costs_is_bounded
    often, seldom = [50, 1].map { |percent| jobs(3000, percent, objects: 300)[:minor_gc_count] }

    assert_operator seldom, :<, often
  end

  # Its first requests are not the ones to learn that.
  def test_who_comes_from_a_mold_that_knows_what_it_costs_need_not_find_out
    without, with = [nil, 0.1].map { |price| forked_from_a_mold_that_knows(price) { jobs(20, 1)[:minor_gc_count] } }

    assert_equal [1, 0], [without, with]
  end

  # It would wait longer, so that more garbage is there next time, and so on.
  def test_the_cost_of_much_garbage_does_not_put_off_the_next_one
    skip_without_marking_time

    assert_operator forked_from_a_mold_that_knows(0.00001) { jobs(20, 10, objects: 200_000)[:minor_gc_count] }, :>=, 10
  end

  # Each collection looks through all of it, although it has little garbage to free.
  def test_a_large_cache_that_each_job_writes_to_makes_them_rare
    skip_without_marking_time
    cache = Array.new(1_000_000) { Object.new }
    done = forked_from_a_mold_that_knows(0.00001) { in_child { collections { write_to(cache) } } }

    assert_includes 1...30, done[:minor_gc_count]
  end

  # Each collection passes all of it. A few objects keep Ruby from giving the pages back.
  def test_much_free_room_makes_them_rare
    skip_without_marking_time
    done = forked_from_a_mold_that_knows(0.00001) do
      in_child do
        kept = Array.new(2_000_000) { |index| Object.new.then { |one| one if (index % 500).zero? } }
        GC.start
        GC.disable
        collector = Pando::Refork::Collector.new(10).tap(&:start)
        collections { serve(collector, 200, objects: 10_000) }.merge(kept: kept.size)
      end
    end

    assert_includes 1...60, done[:minor_gc_count]
  end

  def write_to(cache)
    GC.disable
    GC.stat(:heap_free_slots).times { cache << Object.new }
    collector = Pando::Refork::Collector.new(50).tap(&:start)
    50.times do |index|
      cache[index] = Object.new
      serve(collector, 1, objects: 60_000)
    end
  end

  def forked_from_a_mold_that_knows(price)
    4.times { GC.start } # all that it has is old
    Pando::Refork::Preparation.minor_gc_seconds = price
    yield
  ensure
    Pando::Refork::Preparation.minor_gc_seconds = nil
  end

  def skip_without_marking_time
    skip "this Ruby does not tell how long marking takes" unless Pando::Refork::Collector::MARKING
  end

  # Stands for Refork::MajorGCDeferral.
  class Deferral
    attr_reader :worker, :looks

    def start(worker) = @worker = worker
    def on? = true
    def look = @looks = @looks.to_i + 1
  end

  def test_full_ones_are_looked_after_in_between
    seen = in_child do
      deferral = Deferral.new
      serve(Pando::Refork::Collector.new(1, deferral).tap { |collector| collector.start("me") }, 10)
      [deferral.worker, deferral.looks]
    end

    assert_equal "me", seen.first
    assert_operator seen.last, :>, 0
  end

  # Stands for Refork::MajorGC.
  Wishes = Struct.new(:wanted, :unshares, :forbidden) do
    def unshares? = unshares
    def allowed? = !forbidden
  end

  # GC.start would make it a full one, which writes to all that YJIT knows: that is Ruby's affair.
  def test_where_ruby_wants_a_full_one_it_is_not_brought_forward_under_yjit
    counts = [[:oldgen, true], [:oldgen, false], [nil, true]].map do |wishes|
      in_child do
        GC.start
        GC.disable
        before = GC.count
        serve(Pando::Refork::Collector.new(50, major_gc: Wishes.new(*wishes)).tap(&:start), 200)
        GC.count - before
      end
    end

    assert_equal [true, false, false], counts.map(&:zero?)
  end

  # With or without it.
  class UnderYJIT < SimpleDelegator
    def unshares? = true
  end

  # As an application does that has its own collections between requests. Ruby then runs none by itself.
  def test_where_the_app_has_forbidden_full_ones_the_one_that_ruby_wants_runs_here_under_yjit
    skip_without_deferral
    done, wanted = in_child do
      GC.start
      Pando::Refork::MajorGC.allowed = false
      kept = until_a_full_one_is_wanted
      GC.disable
      collector = Pando::Refork::Collector.new(50, major_gc: UnderYJIT.new(Pando::Refork::MajorGC)).tap(&:start)
      [collections { serve(collector, 10) }, Pando::Refork::MajorGC.wanted, kept.size]
    end

    assert_equal [1, nil], [done[:major_gc_count], wanted]
  end

  # Counts the minor collections.
  Minor = Struct.new(:asked) do
    def wanted = :oldgen
    def possible? = true
    def unshares? = true
    def minor_only = self.asked += 1
  end

  # Ruby never runs that one then, but makes the heap larger with each collection of its own.
  def test_where_full_ones_are_deferred_minor_ones_run_although_ruby_wants_a_full_one
    asked, done = in_child do
      GC.start
      GC.disable
      minor = Minor.new(0)
      done = collections { serve(Pando::Refork::Collector.new(50, Deferral.new, major_gc: minor).tap(&:start), 200) }
      [minor.asked, done]
    end

    assert_operator asked, :>, 0
    assert_equal [0, 0], done.values
  end

  def test_that_one_is_minor_although_ruby_wants_a_full_one
    skip_without_deferral
    possible, done, stress = in_child do
      Pando::Refork::MajorGC.allowed = false
      Pando::Refork::MajorGC.minor_only # Ruby makes some objects of its own for the first call
      kept = until_a_full_one_is_wanted
      possible = Pando::Refork::MajorGC.possible?
      [possible, collections { Pando::Refork::MajorGC.minor_only }, GC.stress, kept.size]
    end

    assert possible
    assert_includes 1..2, done[:minor_gc_count]
    assert_equal [0, false], [done[:major_gc_count], stress]
  end

  def test_while_full_ones_are_deferred_they_come_twice_as_often
    Pando::Refork::Preparation.minor_gc_seconds = 0.01
    waits = [nil, Deferral.new].map do |deferral|
      Pando::Refork::Collector.new(50, deferral).tap(&:start).instance_variable_get(:@wait)
    end

    assert_equal [0.02, 0.01], waits
  ensure
    Pando::Refork::Preparation.minor_gc_seconds = nil
  end

  private

  # @return [Array] what must not become garbage
  def until_a_full_one_is_wanted
    kept = []
    400.times do
      return kept if Pando::Refork::MajorGC.wanted

      kept << Array.new(20_000) { Object.new }
    end
    flunk("Ruby wants no full collection")
  end

  def collections
    before = GC.stat.slice(:minor_gc_count, :major_gc_count)
    yield
    GC.stat.slice(:minor_gc_count, :major_gc_count).to_h { |name, number| [name, number - before[name]] }
  end
end
