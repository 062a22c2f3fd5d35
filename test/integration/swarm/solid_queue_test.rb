# frozen_string_literal: true

require_relative "active_job_nodes"

# Promise: a job of Solid Queue's is done although its node was killed, and none is failed for that.
class SwarmSolidQueueTest < Minitest::Test
  include ActiveJobNodes

  def test_no_job_is_lost
    super

    %w[processes claimed_executions ready_executions failed_executions].each do |table|
      assert_empty(@postgresql.rows("SELECT * FROM solid_queue_#{table}"), table)
    end
  end

  private

  def queue = "solid_queue"
  def options = "polling_interval: 0.05"
end
