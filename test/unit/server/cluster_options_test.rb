# frozen_string_literal: true

require "test_helper"
require "pando/server"
require "pando/server/node_payload"
require_relative "../config/config_test_case"

# What the cluster is told of a kind of job nodes.
class NodeOptionsTest < ConfigTestCase
  def options(text)
    config = load_config(text)
    config.nodes.map { |kind| Pando::Server::NodePayload.new(Pando::Server.new(config), kind).options }
  end

  def test_rollouts_are_the_kinds_own
    one, other = options("rollout canary: { requests: 7, seconds: 1 }\n" \
                         "node :sidekiq, surge: 3\nnode :resque, canary: false, surge: 0, unavailable: 1")

    assert_equal([3, 0, 7], [one.surge, one.unavailable, one.canary.requests])
    assert_equal([0, 1, nil], [other.surge, other.unavailable, other.canary])
  end

  def test_nodes_are_as_many_as_their_line_says_and_have_its_limits
    one, = options("memory worker: 300.mb\nnode :sidekiq, count: 3, memory: 200.mb, quiet_timeout: 5")

    assert_equal([3, 200 * (1024**2), 5.0, true], [one.workers, one.memory.worker, one.longest_request, one.jobs])
  end
end

class TimeScaleTest < Minitest::Test
  def read(text) = Pando::Server::TimeScale.read({ "PANDO_TIME_SCALE" => text }.compact)

  def test_a_second_is_a_second_unless_the_environment_says_otherwise
    assert_equal [1.0, 60.0], [read(nil), read("60")]
  end

  def test_what_is_no_scale_is_refused_with_what_to_do
    %w[0 -1 0.5 fast nan Infinity].each do |text|
      error = assert_raises(Pando::ConfigError, text) { read(text) }

      assert_match(/PANDO_TIME_SCALE must be a number of 1 or more, and is .*: set it for load tests only/,
                   error.message)
    end
  end
end
