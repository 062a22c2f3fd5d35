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

  private

  def queue = "good_job"
  def options = "poll_interval: 1"
end
