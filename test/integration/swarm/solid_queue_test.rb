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
    names = @postgresql.rows("SELECT name FROM solid_queue_processes").flatten
    @postgresql.stop
    wait_until(message: -> { "the end of #{names}\n#{@server.output[-4000..]}" }) do
      names.all? { |name| @server.output.match?(/@#{name} .* terminated with exception/) }
    end
    @postgresql.resume

    assert_operator(names.size, :>=, 4)
    assert_predicate(@server.stop, :success?, @server.output)
    assert_nothing_left("processes")
  end

  # The database is back before Solid Queue gives up waiting for the job, which would begin again before a later one.
  def test_a_running_job_stays_that_of_its_node_when_the_thread_that_claims_jobs_has_died
    order(700..700, gate: gate("long"))
    runner = wait_for_begun(700)
    name, = @postgresql.rows("SELECT name FROM solid_queue_processes WHERE kind = 'Worker' AND pid = #{runner}").first
    @server.wait_for("broker.lost", patience: 60) { @postgresql.stop }
    @postgresql.resume
    wait_until(timeout: 60, message: -> { "the end of #{name}\n#{@server.output[-4000..]}" }) do
      @server.output.match?(/@#{name} .* terminated with exception/)
    end
    order(701..701)
    wait_for_done(701..701)

    assert_equal([["begun"]], kinds_of(700))
    open_gate("long")
    wait_for_done(700..700)
    assert_equal([["begun"], ["done"]], kinds_of(700))
    wait_until(message: "the end of its registration") do
      @postgresql.rows("SELECT id FROM solid_queue_processes WHERE name = '#{name}'").empty?
    end
  end

  # The job beside it may die with it twice; a death that it may have caused as well does not fail the other one.
  def test_a_job_that_kills_its_nodes_fails_and_no_other_one
    order(500..500, seconds: 3, each_time: true)
    order(501..501, seconds: -1)
    wait_for_done(500..500)
    wait_until(timeout: 120, message: -> { "the failure\n#{@server.output[-4000..]}" }) { failed_jobs.any? }

    deaths = kinds_of(501)
    assert_equal([["begun"]], deaths.uniq)
    assert_includes(3..5, deaths.size)
    assert_equal(1, failed_jobs.size)
    assert_includes(failed_jobs.first.first, "SolidQueue::Processes::ProcessExitError")
    told = @server.events("job.killed").select { |event| event["reason"] == "it has failed" }
    assert_equal([["EffectJob", deaths.size]], told.map { |event| event.values_at("name", "deaths") })
    assert_empty(@postgresql.rows("SELECT id FROM solid_queue_jobs WHERE finished_at IS NULL AND " \
                                  "arguments LIKE '%pando_deaths%'"))
  end

  def test_a_claim_without_a_job_keeps_no_node_from_starting
    order(600..600, seconds: FOR_EVER)
    victim = wait_for_begun(600)
    @postgresql.rows("ALTER TABLE solid_queue_claimed_executions DROP CONSTRAINT #{constraint}")
    @postgresql.rows("DELETE FROM solid_queue_jobs")
    @server.wait_for("worker.ready") { Process.kill("KILL", victim) }
    order(601..601)
    wait_for_done(601..601)

    wait_until(message: "no claim") { @postgresql.rows("SELECT id FROM solid_queue_claimed_executions").empty? }
  end

  private

  def failed_jobs = @postgresql.rows("SELECT error FROM solid_queue_failed_executions")

  def constraint
    @postgresql.rows("SELECT conname FROM pg_constraint WHERE contype = 'f' AND " \
                     "conrelid = 'solid_queue_claimed_executions'::regclass").first.first
  end

  def assert_nothing_left(table)
    assert_empty(@postgresql.rows("SELECT * FROM solid_queue_#{table}"), table)
  end

  def queue = "solid_queue"
  def options = "polling_interval: 0.05"
end
