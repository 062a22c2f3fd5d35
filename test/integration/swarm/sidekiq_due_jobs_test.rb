# frozen_string_literal: true

require "test_helper"
require "support/sidekiq_redis"

# Promise: scheduled jobs and retries that a process has taken and not yet pushed go back to their sets. Redis is real.
class SidekiqDueJobsTest < Minitest::Test
  include Support::SidekiqRedis

  DueJobs = Pando::Swarm::Runners::Sidekiq::DueJobs
  UnreportedRuns = Pando::Swarm::Runners::Sidekiq::UnreportedRuns

  def test_due_jobs_are_taken_in_order_and_go_back_with_their_times
    due = { "schedule" => %w[first 1.5 second 2.25], "retry" => %w[again 1764337266.123456] }
    schedule("schedule", "later", Time.now.to_f + 1000)
    due.each { |set, jobs| jobs.each_slice(2).reverse_each { |job, time| schedule(set, job, time) } }
    ours = @held_jobs.due_jobs
    assert_equal(["first", "second", nil], Array.new(3) { take(ours, "schedule") })
    assert_equal(["again", nil], Array.new(2) { take(ours, "retry") })
    assert_equal([%w[later], []], [scheduled("schedule"), scheduled("retry")])
    2.times { ours.put_back }

    assert_equal(%w[first second later], scheduled("schedule"))
    due.each { |set, jobs| assert_equal(jobs, scheduled(set, "WITHSCORES").first(jobs.size)) }
    assert_empty(due_keys)
  end

  # The push may have killed the process.
  def test_due_jobs_go_back_behind_the_others_when_their_process_has_died
    holder("ended", dead)
    theirs = DueJobs.new(@config, "ended")
    { "first" => 1, "other" => 2, "later" => Time.now.to_f + 1000 }.each { |job, time| schedule("schedule", job, time) }
    schedule("retry", "again", 3)
    assert_equal(%w[first again], [take(theirs, "schedule"), take(theirs, "retry")])
    2.times { @recovery.recover_dead }

    assert_equal(%w[other first later], scheduled("schedule"))
    times = [scheduled("schedule", "WITHSCORES")[3], scheduled("retry", "WITHSCORES")[1]]
    times.each { |time| assert_in_delta(Time.now.to_f + DueJobs::AGAIN, time.to_f, 5) }
    assert_empty(due_keys)
  end

  # Redis is down at the end, so the next run of the same process reports it.
  def test_the_next_run_puts_due_jobs_back_except_those_that_were_pushed
    %w[pushed lost].each { |job| schedule("retry", job, 1) }
    taken = Array.new(2) { take(@held_jobs.due_jobs, "retry") }
    @config.away = 1
    assert_raises(RuntimeError) { @held_jobs.due_jobs.pushed("retry", "pushed") }
    @config.away = 1
    refute(@held_jobs.release(0))
    UnreportedRuns.add(@held_jobs)
    UnreportedRuns.release

    assert_equal(%w[lost pushed], taken.sort)
    assert_equal(%w[lost], scheduled("retry"))
    assert_empty(due_keys)
  end

  def test_a_due_job_that_cannot_be_pushed_is_postponed_once
    schedule("schedule", "job", 1)
    take(@held_jobs.due_jobs, "schedule")
    @held_jobs.due_jobs.postpone("schedule", "job")
    job, time = scheduled("schedule", "WITHSCORES")
    @redis.call("DEL", "schedule")
    @held_jobs.due_jobs.postpone("schedule", "job") # another process has put it back, and run it

    assert_equal("job", job)
    assert_in_delta(Time.now.to_f + DueJobs::AGAIN, time.to_f, 5)
    assert_empty(scheduled("schedule") + due_keys)
  end

  def test_a_redis_without_free_memory_keeps_due_jobs
    schedule("schedule", "job", 1)
    without_free_memory
    error = assert_raises(Support::RedisServer::Refused) { take(@held_jobs.due_jobs, "schedule") }

    assert_match(/OOM/, error.message)
    assert_equal(%w[job 1], scheduled("schedule", "WITHSCORES"))
    assert_empty(due_keys)
  end

  def test_a_redis_without_free_memory_takes_due_jobs_back
    { "first" => 1.5, "second" => 2 }.each { |job, time| schedule("schedule", job, time) }
    2.times { take(@held_jobs.due_jobs, "schedule") }
    holder("ended", dead)
    schedule("retry", "again", 3)
    take(DueJobs.new(@config, "ended"), "retry")
    without_free_memory
    @held_jobs.due_jobs.put_back
    @recovery.recover_dead

    assert_equal(%w[first 1.5 second 2], scheduled("schedule", "WITHSCORES"))
    assert_equal(%w[again], scheduled("retry"))
    assert_empty(due_keys + @redis.call("HKEYS", HeldJobs::HOLDERS))
  end

  private

  def schedule(set, job, time) = @redis.call("ZADD", set, time, job)
  def scheduled(set, *options) = @redis.call("ZRANGE", set, 0, -1, *options)
  def take(due_jobs, set) = due_jobs.take(set, Time.now.to_f)
  def without_free_memory = @redis.call("CONFIG", "SET", "maxmemory", 1)
  def due_keys = @redis.call("KEYS", "pando:sidekiq:due:*")
end
