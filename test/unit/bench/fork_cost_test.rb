# frozen_string_literal: true

require_relative "bench_helper"
require "support/fork_cost"

class ForkCostTest < Minitest::Test
  def test_write_costs_more_than_read
    cost = Bench::ForkCost.measure

    assert_operator cost.read, :>, 0
    assert_operator cost.write, :>, cost.read # a page fault and a copy
    assert_includes cost.to_s, format("%.2f", cost.write)
  end
end
