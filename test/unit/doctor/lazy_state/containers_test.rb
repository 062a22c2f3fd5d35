# frozen_string_literal: true

require "test_helper"
require "pando/doctor/lazy_state"

# Arrays, hashes and strings that grow without new objects.
class LazyStateContainersTest < Minitest::Test
  def growth(container, steps)
    containers = Pando::Doctor::LazyState::Containers.new
    containers.count
    steps.each do |step|
      step.call
      containers.count
    end
    containers.growths.find { |one| one.address == Pando::Origins.address(container) }
  end

  def test_what_each_request_adds_is_steady
    list = [1]
    found = growth(list, Array.new(4) { -> { list << 2 << 3 } })

    assert_equal [1, [2, 2, 2, 2], true, false, 2],
                 [found.before, found.gains, found.steady?, found.once?, found.gain]
  end

  def test_what_the_first_one_adds_is_not
    table = {}
    found = growth(table, [-> { 500.times { |number| table[number] = true } }, -> {}, -> {}, -> {}])

    assert_equal [false, true, 500], [found.steady?, found.once?, found.gain]
  end

  def test_a_long_string_is_followed
    text = "x" * 2000
    found = growth(text, Array.new(4) { -> { text << "yy" } })

    assert_equal [2000, 2], [found.before, found.gain]
  end

  def test_what_is_emptied_is_no_growth
    list = [1]

    assert_nil growth(list, [-> { list << 2 }, -> { list.clear }, -> {}])
  end
end
