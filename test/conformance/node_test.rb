# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "support/mutation_run"
require_relative "support/node_differences"

# Node's parser (llhttp, strict) and Pando judge the same mutated requests. Where
# they disagree, the reason must be one that is known: see
# support/node_differences.rb. fuzz/node runs as many more as wanted.
class NodeConformanceTest < Minitest::Test
  COUNT = 3000

  def setup
    obstacle = Conformance::NodeDifferences.obstacle
    skip obstacle if obstacle
  end

  def test_every_disagreement_is_explained
    seed = Random.rand(1 << 32)
    differences = Conformance::NodeDifferences.new(seed).run(COUNT)

    assert_empty differences.unexplained.first(5), "seed #{seed}"
    assert_operator differences.agreed, :>, COUNT / 2
    refute_empty differences.explained
  end
end
