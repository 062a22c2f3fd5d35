# frozen_string_literal: true

require "test_helper"
require "support/sidekiq_swarm"

# Promise: a Rails app's jobs run in nodes by Active Job, before and after a refork.
class SidekiqRailsTest < Minitest::Test
  include Support::SidekiqSwarm

  ENVIRONMENT = File.join(FIXTURES, "rails/config/environment.rb")

  def test_active_jobs
    server = swarm("count: 1", required: ENVIRONMENT)
    seed(server, "early")
    early = node_pids(server)
    server.refork
    wait_until(message: -> { server.output }) { !early.intersect?(node_pids(server)) }
    seed(server, "late")

    assert_empty(traces(server, "stopping"))
    assert_predicate(server.stop, :success?)
    assert_empty(server.complaints.reject { |event| event["event"] == "refork.refused" })
  end

  private

  def seed(server, prefix)
    order([prefix, 20], job: "SeedJob")
    wait_for_end(server, Array.new(20) { |number| "#{prefix}#{number}" })
  end
end
