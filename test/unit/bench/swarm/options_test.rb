# frozen_string_literal: true

require_relative "../bench_helper"
require "support/swarm/options"

class SwarmOptionsTest < Minitest::Test
  def test_time_scale_has_results_of_its_own
    plain = Bench::Swarm::Options.new([])
    scaled = Bench::Swarm::Options.new(%w[--time-scale 60])

    assert_equal [1, 60], [plain.time_scale, scaled.time_scale]
    assert_equal "pando-auto-4x5-10000", plain.id("pando-auto")
    assert_equal "pando-auto-4x5-10000-scale60", scaled.id("pando-auto")
  end
end
