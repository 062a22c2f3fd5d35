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

  PARSER = 9 # llhttp's version that is strict about line ends and bytes beyond ASCII, from Node 20 on

  def setup
    skip "no node on this machine: apt-get install nodejs" unless Conformance::NodeDifferences.node?
    parser = Conformance::NodeDifferences.parser
    skip "Node's parser is llhttp #{parser}: only #{PARSER} and newer are strict enough" if parser.to_i < PARSER
  end

  def test_every_disagreement_is_explained
    seed = Random.rand(1 << 32)
    differences = Conformance::NodeDifferences.new(seed).run(COUNT)

    assert_empty differences.unexplained.first(5), "seed #{seed}"
    assert_operator differences.agreed, :>, COUNT / 2
    refute_empty differences.explained
  end
end
