# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

# Which workers are to be replaced.
class RetiredGenerationsTest < Minitest::Test
  RetiredGenerations = Pando::Cluster::RetiredGenerations
  Worker = Struct.new(:generation)

  def setup = @retired = RetiredGenerations.new
  def outdated = (0..4).select { |generation| @retired.outdated?(Worker.new(generation)) }

  def test_those_below_it
    assert_empty outdated
    @retired.raise_to(2)
    @retired.raise_to(3)
    @retired.raise_to(3)

    assert_equal [0, 1, 2], outdated
  end

  def test_a_generation_that_came_to_nothing
    @retired.raise_to(2)
    @retired.raise_to(3)
    @retired.discard(3)

    assert_equal [0, 1, 3], outdated
    assert @retired.discarded?(Worker.new(3))
    refute @retired.discarded?(Worker.new(1))
  end

  def test_one_that_the_floor_was_not_raised_to
    @retired.raise_to(2)
    @retired.discard(4)

    assert_equal [0, 1, 4], outdated
  end

  def test_it_remembers_so_many_and_no_more
    (1..(RetiredGenerations::MEMORY + 50)).each { |number| @retired.discard(number) }

    assert_equal(RetiredGenerations::MEMORY, (0..500).count do |generation|
      @retired.discarded?(Worker.new(generation))
    end)
  end
end
