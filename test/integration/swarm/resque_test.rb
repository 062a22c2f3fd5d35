# frozen_string_literal: true

require_relative "broker_nodes"
require "support/cable"
require "support/redis_server"

# Promise: each job of Resque is done in a process of its own, or is among the failed ones: across reforks, kills, stops
# and a Redis that goes away.
class ResqueNodesTest < Minitest::Test
  include BrokerNodes

  def setup
    super
    @redis = Support::RedisServer.new(@folder).start
    listen = -> { FileUtils.rm_f(cable_path) && UNIXServer.new(cable_path) }
    @cable = Support::Cable.new(listen) { UNIXSocket.new(@redis.socket_path) }
  end

  def teardown
    super
    @cable&.close
    @redis&.stop
  end

  def test_jobs_are_done_across_a_refork_an_outage_a_kill_and_a_stop
    server = swarm(line(count: 2))
    first = enqueue("first", 20)
    wait_for_notes("done", first)
    assert_equal 1, server.refork["generation"]
    server.wait_for_leavers
    second = enqueue("second", 20)
    wait_for_notes("done", second)

    assert_equal (first + second).sort, names("done").sort # each once
    assert_equal 40, notes.map { |note| note["pid"] }.uniq.size
    assert_empty nodes_of(first) & server.nodes("resque").map(&:pid)
    assert_empty nodes_of(second) - server.nodes("resque").map(&:pid)
    survive_an_outage(server)
    kill_a_node_at_work(server)
    assert_predicate server.stop, :success?, server.output
    assert_empty console.call("workers")
  end

  def test_what_becomes_of_jobs_that_fail_and_of_active_jobs
    server = swarm("#{line(count: 1)}, quiet_timeout: 0.2", config: "stop_timeout 3")
    console.call("['bad raise no', 'dead kill'].each { |one| Resque.enqueue(NoteJob, *one.split) }")
    console.call("Resque.enqueue(NoteJob, 'good') && ActiveNoteJob.perform_later('active') && nil")
    wait_for_notes("done", %w[good active])
    enqueue("late", 1, "until never")
    wait_for_notes("begun", %w[late0])
    server.stop

    bad, dead, late = console.call("failures")
    assert_equal %w[RuntimeError no], bad
    assert_equal "Resque::DirtyExit", dead.first
    assert_match(/SIGKILL/, dead.last)
    assert_equal %w[Resque::TermException SIGTERM], late
    assert_equal %w[bad dead good late0], names("begun")
    assert_equal "resque", note_of("done", "active")["adapter"]
    assert_equal "pando job of resque 0 ActiveNoteJob", note_of("done", "active")["title"]
  end

  def test_its_runner_keeps_the_rules_and_ends_jobs_that_take_too_long
    assert_empty console.call("lint(:resque, ['notes'], { interval: 0.1 }) { Resque.enqueue(NoteJob, 'one') }")
    options = "{ interval: 0.1, job_timeout: 0.5 }"
    failed = console.call("run(:resque, ['notes'], #{options}) { Resque.enqueue(NoteJob, 'late', 'until', 'never') }")

    assert_equal 1, failed
    assert_includes %w[Resque::TermException Resque::DirtyExit], console.call("failures").last.first
  end

  # Its process has four fifths of stop_timeout for it.
  def test_work_that_a_job_queues_in_its_process_is_done_or_named
    server = swarm(line(count: 1), config: "stop_timeout 6")
    enqueue("early", 1, "queue")
    wait_for_notes("queued", %w[early00 early01])
    enqueue("late", 1, "queue never")
    dropped = server.wait_past("work.dropped")

    assert_equal ["concurrent-ruby", 2, 0], dropped.values_at("library", "count", "slot")
    assert_match(/resque_jobs\.rb:\d+:in .* \(running\)/, dropped["names"].to_s)
    assert_equal note_of("done", "late0")["pid"], dropped["pid"]
    enqueue("next", 1)
    wait_for_notes("done", %w[next0])
    assert_empty console.call("failures")
  end

  def test_work_that_a_job_queues_belongs_to_the_time_of_the_job
    server = swarm("#{line(count: 1)}, job_timeout: 0.5", config: "stop_timeout 600")
    enqueue("late", 1, "queue never")

    assert_equal 2, server.wait_past("work.dropped")["count"]
    enqueue("next", 1)
    wait_for_notes("done", %w[next0])
    assert_empty console.call("failures")
  end

  # As in a container that was killed and started again: the host's name and the pids are the same.
  def test_the_job_of_a_killed_node_is_not_lost_to_one_of_the_same_name
    console.call("leave_a_dead_worker('notes', 'lost')")
    console.call("run(:resque, ['notes'], { interval: 0.1 }) { Resque.enqueue(NoteJob, 'next') }")

    assert_equal [["Resque::DirtyExit", "Job still being processed"]], console.call("failures")
    assert_equal %w[next], names("done")
    assert_empty console.call("workers")
  end

  private

  def obstacle = Support::RedisServer.obstacle
  def jobs = "resque_jobs.rb"
  def cable_path = File.join(@folder, "cable.sock")

  def environment
    { "BROKER_SOCKET" => @redis.socket_path, "WITH_ACTIVE_JOB" => ("1" if name.include?("active_jobs")) }
  end

  def line(count:)
    ":resque, count: #{count}, queues: %w[notes], interval: 0.1, redis: { path: #{cable_path.dump} }"
  end

  def enqueue(name, count, order = "")
    Array.new(count) { |number| "#{name}#{number}" }.tap do |names|
      console.call("#{names.map { |one| [one, *order.split] }}.each { |one| Resque.enqueue(NoteJob, *one) }.size")
    end
  end

  # @return [Array<Integer>] pids of the nodes that did these
  def nodes_of(names) = notes.select { |note| names.include?(note["done"]) }.map { |note| note["node"] }.uniq

  def survive_an_outage(server)
    enqueue("during", 1, "until #{go_file}")
    wait_for_notes("begun", %w[during0])
    outage(server, "resque") do |seconds|
      server.wait_for("broker.lost") { @cable.cut } # the one that does nothing
      go
      wait_for_notes("done", %w[during0])
      2.times { |number| server.wait_past("broker.lost", slot: number) }
      waiting = enqueue("meanwhile", 5)
      sleep(seconds)
      @cable.mend
      2.times { |number| server.wait_past("broker.found", slot: number) }
      wait_for_notes("done", waiting)
    end
    wait_until(message: "nobody at work") { console.call("Resque.working.size").zero? }
    assert_empty console.call("failures")
    assert_equal names("done").uniq, names("done")
    FileUtils.rm_f(go_file)
  end

  def kill_a_node_at_work(server)
    enqueue("killed", 1, "until #{go_file}")
    wait_for_notes("begun", %w[killed0])
    pid, node = note_of("begun", "killed0").values_at("pid", "node")
    server.wait_for("worker.ready") { Process.kill("KILL", node) }
    wait_until(message: "the end of its child") { !File.exist?("/proc/#{pid}") }
    wait_until(message: "its job among the failed") { console.call("failures").size == 1 }

    assert_equal ["Resque::DirtyExit", "Job still being processed"], console.call("failures").first
    refute_includes names("done"), "killed0"
  end
end
