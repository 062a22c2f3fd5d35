# frozen_string_literal: true

require "test_helper"
require "open3"
require "pando/config/node_line"
require "pando/swarm/runners/sidekiq"
require "support/runner_rules"
require "support/sidekiq_swarm"

# Promise: nothing of Sidekiq is left when its runner has stopped, and it can be started again, in the same process and
# in one that was forked from it.
class SidekiqRunnerTest < Minitest::Test
  include Support::SidekiqSwarm
  include Support::RunnerRules

  def test_it_keeps_the_rules
    assert_keeps_the_rules("sidekiq", environment, files: [Support::SidekiqSwarm::JOBS])
  end

  def test_what_is_left_when_it_has_stopped
    told = run_script
    lives = told.values_at("first", "second", "child")

    lives.each { |life| assert_equal(told["before"], life["left"]) }
    assert_equal([[21, 1, nil]] * 3, lives.map { |life| life.values_at("done", "failed", "healthy") })
    assert_equal([24] * 3, lives.map { |life| life["progress"] }, "those that another job performs are progress")
    assert_equal([%w[startup quiet shutdown]] * 3, lives.map { |life| life["events"] })
    assert_equal([1, 1, 1], lives.map { |life| life["identity"].size })
    assert_equal(3, lives.flat_map { |life| life["identity"] }.uniq.size)
    wait_until(message: -> { @redis.connections }) { @redis.connections.empty? }
    assert_equal(["given back"], told["waiting"])
    assert_empty(@redis.call("KEYS", "pando:sidekiq:*"))
  end

  def test_it_does_not_start_without_redis
    @redis.stop
    output, status = Open3.capture2e(environment, *command, chdir: @folder)

    refute_predicate(status, :success?)
    assert_match(/CannotConnectError/, output)
  end

  private

  def run_script
    output, errors, status = Open3.capture3(environment, *command, chdir: @folder)
    assert_predicate(status, :success?, errors)
    JSON.parse(output)
  end

  def command = [RbConfig.ruby, "-W0", "-I", Support::Checkout.path("lib"), File.join(FIXTURES, "two_lives.rb")]
end
