# frozen_string_literal: true

require_relative "broker_nodes"
require "time"
require "support/redis_server"

# Promise: a node of Resque ends neither by what its Redis does nor by what the application's hooks do, and no job is
# lost meanwhile.
class ResqueRunnerTest < Minitest::Test
  include BrokerNodes

  def setup
    super
    @redis = Support::RedisServer.new(@folder).start
  end

  def teardown
    super
    @redis&.stop
  end

  # Such a Redis is up, and refuses heartbeats, results and failures.
  def test_a_redis_that_loads_its_data_ends_no_job
    hook(:after_perform_raise, "|name, *| raise 'no' if name == 'bad'")
    assert_nil start
    order("'bad', 'until', #{go_file.dump}", "'good'")
    wait_for_notes("begun", %w[bad])
    @redis.restart_loading
    wait_until(message: "a refused heartbeat") { @redis.refusals > 0 }
    seen = @redis.refusals
    go
    wait_for_notes("done", %w[bad], timeout: 20)
    wait_until(message: "a refused failure") { @redis.refusals > seen }

    assert_equal [0, 0, nil], console.call("state")
    @redis.load_the_rest
    wait_for_notes("done", %w[good])
    wait_until(message: "two jobs") { console.call("state") == [2, 1, nil] }
    assert_equal [%w[RuntimeError no]], console.call("failures")
    stop
  end

  def test_a_hook_that_fails_once_fails_one_job
    console.call("Resque.before_fork { raise 'once' if (@forks = @forks.to_i + 1) == 1 } && nil")
    assert_nil start
    order("'first'", "'second'", "'third'")
    wait_for_notes("done", %w[second third])
    wait_until(message: "three jobs") { console.call("state").first == 3 }

    assert_equal [3, 1, nil], console.call("state")
    assert_equal [%w[RuntimeError once]], console.call("failures")
    stop
  end

  # A memcached that refuses is no Redis that is down.
  def test_a_first_hook_that_fails_fails_the_start
    console.call("Resque.before_first_fork { @runs = @runs.to_i + 1; raise Errno::ECONNREFUSED, 'memcached' } && nil")

    assert_equal ["Errno::ECONNREFUSED", "Connection refused - memcached"], start
    assert_equal [1, []], console.call("[@runs, events('broker.lost')]")
  end

  def test_a_last_hook_that_fails_is_reported_and_the_node_ends
    console.call("Resque.worker_exit { raise Errno::ECONNREFUSED, 'memcached' } && nil")
    assert_nil start
    stop

    hook, reason = console.call("events('hook.failed')").first.values_at("hook", "reason")
    assert_equal "worker_exit", hook
    assert_match(/\AConnection refused - memcached \(Errno::ECONNREFUSED\)/, reason)
    assert_empty console.call("workers")
  end

  # Resque raises what the hook raised, after it has recorded the failure.
  def test_a_hook_for_failed_jobs_that_fails_does_not_end_the_node
    hook(:on_failure_raise, "|*| raise 'no'")
    assert_nil start
    order("'dead', 'kill'", "'good'")
    wait_for_notes("done", %w[good], timeout: 20)
    wait_until(message: "two jobs") { console.call("state").first == 2 }

    assert_equal [2, 1, nil], console.call("state")
    assert_equal(%w[Resque::DirtyExit], console.call("failures").map(&:first))
    assert_match(/RuntimeError: no/, console.call("events('job.failed')").first["reason"])
    stop
  end

  # The other node is in a container with the same host name. It is alive, because it sends heartbeats.
  def test_a_node_does_not_take_the_name_of_a_living_one
    console.call("leave_a_dead_worker('notes', 'running')")
    beat # the thread may begin after the new node has looked
    heart = Thread.new { loop { beat && sleep(0.2) } }
    error, message = start

    assert_equal "Pando::BootError", error
    assert_match(/\.pando:\d+:notes.* host name/, message)
    assert_empty console.call("failures")
    assert_equal 1, console.call("workers.size")
  ensure
    heart&.kill&.join
  end

  # It was killed just now, with its container.
  def test_a_node_takes_the_name_of_a_dead_one_once_its_heartbeat_is_old
    console.call("leave_a_dead_worker('notes', 'running')")
    beat
    assert_nil start

    assert_equal [["Resque::DirtyExit", "Job still being processed"]], console.call("failures")
    assert_operator seconds - @beat_at, :>=, 9 # a heartbeat is a whole second
    stop
  end

  def test_a_job_whose_class_fails_to_load_fails
    file = File.join(@folder, "broken_job.rb")
    File.write(file, "raise 'no'")
    console.call("Object.autoload(:BrokenJob, #{file.dump})")
    assert_nil start
    console.call("Resque.push('notes', class: 'BrokenJob', args: [])")
    wait_until(message: "the job") { console.call("state").first == 1 }

    assert_equal [%w[RuntimeError no]], console.call("failures")
    stop
  end

  # Each job ends before the next heartbeat is due, and the queue is never empty.
  def test_a_node_that_is_never_idle_sends_heartbeats_counts_waiting_jobs_and_keeps_its_name
    assert_nil start
    order("'busy', 'again', #{go_file.dump}")
    2.times do
      before = heartbeats
      wait_until(message: "a later heartbeat") { heartbeats != before }
    end
    assert_kind_of Integer, console.call("@runner.lag")
    error, message = console.call("(@first = @runner) && nil") || start

    assert_equal "Pando::BootError", error
    assert_match(/another node, which is alive/, message)
    assert_equal 1, console.call("workers.size")
  ensure
    go
    console.call("(@first || @runner).stop && nil")
  end

  # Another node took it for dead, because it or its Redis had been stopped for a while.
  def test_a_node_that_was_unregistered_registers_again
    assert_nil start
    order("'long', 'until', #{go_file.dump}")
    wait_for_notes("begun", %w[long])
    assert_nil console.call("Resque.workers.each(&:unregister_worker) && nil")
    wait_until(message: "its name in the list") { console.call("workers").one? }
    order("'dead', 'kill'")
    go
    wait_until(message: "two jobs") { console.call("state").first == 2 }

    assert_equal([["Resque::DirtyExit", "Job still being processed"], "Resque::DirtyExit"],
                 console.call("failures").then { |first, second| [first, second.first] })
    stop
    assert_empty console.call("workers")
  end

  # They could not send heartbeats while Redis was down.
  def test_a_node_that_starts_while_redis_is_down_takes_no_other_node_for_dead_yet
    console.call("Resque.heartbeat_interval = 60")
    @redis.call("SADD", "resque:workers", "other:1:notes")
    @redis.call("HSET", "resque:workers:heartbeat", "other:1:notes", "2001-01-01T00:00:00Z")
    @redis.restart_loading
    assert_nil start
    @redis.load_the_rest
    wait_until(message: "the new node in the list") { console.call("workers").grep(/\.pando:/).one? }

    assert_includes console.call("workers"), "other:1:notes"
    stop
  end

  private

  # @return [Array<String>] the names of workers and the times
  def heartbeats = @redis.call("HGETALL", "resque:workers:heartbeat")

  # Renews the heartbeat of each worker that is listed.
  def beat
    @beat_at = seconds
    @redis.call("SMEMBERS", "resque:workers").each do |worker|
      @redis.call("HSET", "resque:workers:heartbeat", worker, Time.now.utc.iso8601)
    end
  end

  def seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def obstacle = Support::RedisServer.obstacle
  def jobs = "resque_jobs.rb"
  def environment = { "BROKER_SOCKET" => @redis.socket_path }
  def start = console.call("start(:resque, ['notes'], { interval: 0.1 })")
  def hook(name, block) = console.call("NoteJob.define_singleton_method(:#{name}) { #{block} } && nil")
  def stop = console.call("stop")

  # @param jobs [Array<String>] arguments of one each
  def order(*jobs) = jobs.each { |one| console.call("Resque.enqueue(NoteJob, #{one})") }
end
