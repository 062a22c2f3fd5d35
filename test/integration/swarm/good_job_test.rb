# frozen_string_literal: true

require_relative "active_job_nodes"

# Promise: GoodJob's jobs are done although their node was killed.
class SwarmGoodJobTest < Minitest::Test
  include ActiveJobNodes

  def test_no_job_is_lost
    super

    assert_empty(@postgresql.rows("SELECT id FROM good_jobs WHERE finished_at IS NULL"))
    assert_empty(@postgresql.rows("SELECT objid FROM pg_locks WHERE locktype = 'advisory'"))
  end

  # Two nodes have two threads each, and each waiting job is in both pools.
  def test_the_waiting_jobs_of_thread_pools_are_counted_once
    order(0...12, gate: gate("pools"))
    wait_until(timeout: 60, message: -> { "eight waiting jobs: #{loads(@server)}" }) do
      loads(@server).all? { |lag, latency| lag == 8 && latency&.positive? }
    end
    open_gate("pools")
    wait_for_done(0...12)
  end

  private

  def queues = name.include?("pools") ? ["default:1;*:1"] : super
  def queue = "good_job"
  def options = "poll_interval: 1"
end
