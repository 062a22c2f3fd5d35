# frozen_string_literal: true

require_relative "active_job_nodes"

# Promise: a job of Solid Queue's is done although its node was killed, and none is failed for that.
class SwarmSolidQueueTest < Minitest::Test
  include ActiveJobNodes

  def test_no_job_is_lost
    super

    %w[processes claimed_executions ready_executions failed_executions].each { |table| assert_nothing_left(table) }
  end

  # The threads that died of it are replaced within a second; before, nobody has taken their registrations back.
  def test_no_registration_is_left_of_nodes_that_stop_right_after_an_outage
    @postgresql.stop
    sleep(OUTAGE) # all have asked it meanwhile
    @postgresql.resume

    assert_predicate(@server.stop, :success?, @server.output)
    assert_nothing_left("processes")
  end

  private

  def assert_nothing_left(table)
    assert_empty(@postgresql.rows("SELECT * FROM solid_queue_#{table}"), table)
  end

  def queue = "solid_queue"
  def options = "polling_interval: 0.05"
end
