# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/turns"

# Measurements that take turns.
class LabTurnsTest < Minitest::Test
  def setup
    @time = 0
    @done = []
    @cleaned = []
  end

  def test_each_has_its_turn_until_all_have_ended
    turns(nil).run([measurement("a", 3), measurement("b", 1), measurement("c", 2)])

    assert_equal [%w[a b c], %w[a c], %w[a]], [@done.first(3), @done[3, 2], @done[5..]].map(&:sort)
    assert_equal %w[b c a], @cleaned
  end

  def test_the_order_is_another_one_each_time_and_the_same_for_a_seed
    orders = [1, 1, 2].map do |seed|
      @done = []
      turns(nil, seed: seed).run(%w[a b c d].map { |name| measurement(name, 6) })
      @done.each_slice(4).to_a
    end

    assert_equal [%w[a b c d]], orders.first.map(&:sort).uniq
    assert_operator orders.first.uniq.size, :>, 1
    assert_equal orders[0], orders[1]
    refute_equal orders[0], orders[2]
  end

  def test_when_the_time_is_up_all_have_had_as_many_turns
    turns(4).run([measurement("a", 100), measurement("b", 100), measurement("c", 100)])

    assert_equal [2, 2, 2], @done.tally.values
    assert_equal %w[a b c], @cleaned.sort
  end

  def test_if_one_fails_the_others_clean_up
    failing = ->(pause) { pause.call || raise("no") }

    assert_raises(RuntimeError) { turns(nil).run([measurement("a", 9), failing, measurement("b", 9)]) }
    assert_equal %w[a b], @cleaned.sort
  end

  private

  def turns(seconds, seed: 1) = Bench::Lab::Turns.new(seconds, seed: seed, clock: -> { @time })

  # A step takes a second.
  def measurement(name, steps)
    lambda do |pause|
      steps.times do
        break if pause.call

        @time += 1
        @done << name
      end
    ensure
      @cleaned << name
    end
  end
end
