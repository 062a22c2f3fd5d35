# frozen_string_literal: true

require "test_helper"
require "pando/cluster/floor"

# Which workers are to be replaced.
class ClusterFloorTest < Minitest::Test
  Floor = Pando::Cluster::Floor
  Worker = Struct.new(:generation)

  def setup = @floor = Floor.new
  def above = (0..4).select { |generation| @floor.above?(Worker.new(generation)) }

  def test_those_below_it
    assert_empty above
    @floor.raise_to(2)
    @floor.raise_to(3)
    @floor.raise_to(3)

    assert_equal [0, 1, 2], above
  end

  def test_a_generation_that_came_to_nothing
    @floor.raise_to(2)
    @floor.raise_to(3)
    @floor.discard(3)

    assert_equal [0, 1, 3], above
    assert @floor.discarded?(Worker.new(3))
    refute @floor.discarded?(Worker.new(1))
  end

  def test_one_that_the_floor_was_not_raised_to
    @floor.raise_to(2)
    @floor.discard(4)

    assert_equal [0, 1, 4], above
  end

  def test_it_remembers_so_many_and_no_more
    (1..(Floor::MEMORY + 50)).each { |number| @floor.discard(number) }

    assert_equal(Floor::MEMORY, (0..500).count { |generation| @floor.discarded?(Worker.new(generation)) })
  end
end
