# frozen_string_literal: true

require_relative "../config/config_test_case"
require "pando/server"
require "pando/server/cluster_options"

# What the cluster is told of a kind of job nodes.
class NodeOptionsTest < ConfigTestCase
  def options(text)
    config = load_config(text)
    config.nodes.map { |kind| Pando::Server::NodeOptions.of(config, kind) }
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
