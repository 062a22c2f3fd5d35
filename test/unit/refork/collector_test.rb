# frozen_string_literal: true

require "test_helper"
require "pando/refork/collector"
require "pando/sys"
require "support/in_child"

# Young garbage, collected between two jobs.
class CollectorTest < Minitest::Test
  include Support::InChild

  # In a process of its own, with a heap that Ruby need not collect by itself.
  # @return [Hash] of the collections while jobs were done
  def jobs(count, percent, idle: false, objects: 1000)
    in_child do
      GC.start
      before = GC.stat.slice(:minor_gc_count, :major_gc_count)
      GC.disable # only what is asked for
      collector = Pando::Refork::Collector.new(percent).tap(&:start)
      count.times do
        objects.times { Object.new }
        collector.between { idle }
      end
      GC.stat.slice(:minor_gc_count, :major_gc_count).to_h { |name, number| [name, number - before[name]] }
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
end
