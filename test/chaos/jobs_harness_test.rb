# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/waiting"
require "tmpdir"
require "pando/swarm/runner_lint"

%w[support support/chaos/stage].each { |folder| $LOAD_PATH.unshift(File.join(__dir__, folder)) }
require "chaos"
require "queue_runner"

# What a chaos run with job nodes (bin/chaos --nodes) finds wrong about jobs, and what it finds explained; and the
# queue that it has them in.
class ChaosJobsTest < Minitest::Test
  include Support::Waiting

  Queue = Struct.new(:jobs_waiting, :jobs_taken)
  Stall = Struct.new(:seconds)

  def setup
    @folder = Dir.mktmpdir("pando-chaos-jobs")
    %w[inbox taken].each { |name| FileUtils.mkdir_p(File.join(@folder, "jobs", name)) }
    @chronicle = Chaos::Chronicle.new(StringIO.new)
    @stall = Stall.new(0.0)
    @ledger = Chaos::JobLedger.new(@chronicle, journal, @stall)
    @now = Chaos.now
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def journal = File.join(@folder, "jobs.journal")
  def jobs(folder) = Dir.glob("**/*", base: File.join(@folder, "jobs", folder)).map { |name| File.basename(name) }

  # @param words [Array<String>] such as "begun j1 10", each a second after the one before
  def written(*words)
    lines = words.map { |line| line.split.insert(3, @now += 1).join(" ") }
    File.write(journal, "#{lines.join("\n")}\n", mode: "a")
  end

  def died(pid, how = "lost", pool = "jobs")
    @chronicle.hear("event" => "worker.#{how}", "pid" => pid, "pool" => pool, "reason" => "signal KILL")
  end

  def judge(waiting: [], taken: []) = @ledger.conclude(Queue.new(waiting, taken))

  def assert_fine(**queue)
    judge(**queue)
    assert_empty @chronicle.violations
  end

  def assert_violation(pattern, **queue)
    judge(**queue)
    assert_match(pattern, @chronicle.violations.join("\n"))
    assert_equal 1, @chronicle.violations.size
  end

  def test_what_is_done_and_what_waits
    @ledger.ordered("j1")
    @ledger.ordered("j2")
    written("begun j1 10", "done j1 10")

    assert_fine(waiting: %w[j2])
    assert_equal [2, 1, 1], [@ledger.total, @ledger.done, @ledger.open]
  end

  def test_a_job_that_is_lost
    @ledger.ordered("j1")
    written("begun j1 10")

    assert_violation(/neither done nor waiting: j1/)
  end

  def test_a_job_that_nobody_has_given_back
    @ledger.ordered("j1")
    written("begun j1 10")

    assert_violation(/nodes that have ended still have j1/, taken: %w[j1])
  end

  def test_a_job_that_a_node_has_begun_before_the_stop_and_not_ended
    %w[j1 j2].each { |name| @ledger.ordered(name) }
    written("begun j1 10", "begun j2 11")
    died(10)
    died(11, "exited")

    assert_violation(/begun and left behind: j2/, waiting: %w[j1 j2])
  end

  def test_a_job_that_nobody_has_ordered
    written("begun j1 10")

    assert_violation(/begun, and never ordered: j1 by 10/)
  end

  def test_a_job_of_a_node_that_died
    @ledger.ordered("j1")
    written("begun j1 10", "begun j1 11", "done j1 11")
    died(10)

    assert_fine
    assert_equal({ "node died" => 1 }, @ledger.repeats)
  end

  # Between the journal's line and the end of its claim.
  def test_a_job_that_was_done_by_a_node_that_died
    @ledger.ordered("j1")
    written("begun j1 10", "done j1 10", "begun j1 11", "done j1 11")
    died(10, "killed")

    assert_fine
  end

  def test_a_job_that_is_done_twice
    @ledger.ordered("j1")
    written("begun j1 10", "done j1 10", "begun j1 11", "done j1 11")
    died(11)

    assert_violation(/job j1 was begun by 10 at [\d.]+, done, and again by 11/)
  end

  def test_a_job_that_a_node_leaves_behind_as_it_was_told_to_leave
    @ledger.ordered("j1")
    written("begun j1 10", "begun j1 11", "done j1 11")
    died(10, "exited")

    assert_violation(/job j1 was begun by 10 at [\d.]+, not ended, and again by 11/)
  end

  def test_a_node_that_died_when_another_one_had_its_job_already
    @ledger.ordered("j1")
    written("begun j1 10", "begun j1 11", "done j1 11")
    @now -= 60
    written("begun j1 12", "done j1 12")
    [10, 11].each { |pid| died(pid) }

    assert_violation(/job j1 was begun by 11 at [\d.]+, done, and again by 12/)
  end

  def test_a_job_that_did_not_end_in_its_time
    @ledger.ordered("j1")
    written("begun j1 10", "back j1 10 5.0", "begun j1 11", "failed j1 11", "begun j1 10", "done j1 10")

    assert_fine
    assert_equal({ "interrupted" => 1, "failed" => 1 }, @ledger.repeats)
  end

  def test_a_job_that_was_interrupted_before_its_time
    @ledger.ordered("j1")
    written("begun j1 10", "back j1 10 0.3")

    assert_violation(/j1 was given back by 10 after 0.3 s of quiet/, waiting: %w[j1])
  end

  def test_a_job_that_is_not_done_for_long
    Chaos.stub(:now, @now - 100) { @ledger.ordered("j1") }
    @stall.seconds = 70
    assert_fine(waiting: %w[j1])
    @stall.seconds = 30

    assert_violation(/not done 60.0 s after they were ordered: j1 .*never begun/, waiting: %w[j1])
  end

  def test_two_nodes_of_one_number
    written("twice 1 10")
    assert_fine
    @ledger = Chaos::JobLedger.new(@chronicle, journal, @stall, alone: true)

    assert_violation(/node 1 was there twice at [\d.]+: 10 met another/)
  end

  # 502 of a request is not to be excused by what happens to nodes.
  def test_a_node_is_no_worker
    2.times { |number| died(number) }
    died(5, "lost", "web")

    assert_equal %w[node node worker], @chronicle.deaths(@now, Chaos.now, 1).map(&:role)
  end

  STATUS = <<~TEXT
    server workers=6
    pool name=web workers=1
    pool name=jobs workers=1
    generation pool=web number=3 state=current mold=2
    generation pool=jobs number=1 state=current mold=3
    mold pool=web generation=3 pid=2 state=ready
    mold pool=jobs generation=1 pid=3 state=ready
    worker pool=web slot=0 generation=3 pid=4 state=idle
    worker pool=jobs slot=0 generation=1 pid=5 state=busy
  TEXT

  def roll(text)
    rows = text.lines.map { |line| Chaos::Control.new(nil).send(:row, line) }
    Chaos::Roll.new(rows, Struct.new(:pid, :cast).new(1, {}))
  end

  def test_nodes_and_workers_are_told_apart
    all = roll(STATUS)

    assert_equal([4, 5, 2, 3], ["worker", "node", "mold", "node mold"].map { |role| all.one(role) })
    assert_equal 1, all.generation
    assert_equal ["worker 0", "mold", "node 0", "node mold"], all.missing # none of them lives
  end

  def test_each_pool_has_roles_of_its_own
    all = roll(STATUS.gsub("jobs", "apart"))

    assert_equal([4, 5, 2, 3], ["worker", "apart worker", "mold", "apart mold"].map { |role| all.one(role) })
    assert_equal ["worker 0", "mold", "apart worker 0", "apart mold"], all.missing
  end

  def test_with_each_pool_there_are_more_faults
    { "jobs" => "kill node", "apart" => "kill apart" }.each do |pool, one|
      plans = Array.new(400) { |number| schedule(pools: [pool]).round(number).to_h }

      assert_equal Chaos::Fault.kinds([pool]).map(&:label).sort,
                   plans.flat_map { |plan| plan["faults"].map { |fault| fault["fault"] } }.uniq.sort
      assert_raises(ArgumentError) { schedule(only: [one]) }
    end
    assert_empty Chaos::Fault.kinds(["jobs"]).map(&:label).grep(/apart/)
  end

  def schedule(only: nil, pools: []) = Chaos::Schedule.new(7, only, StringIO.new, pools: pools)

  def order(*names) = names.each { |name| File.write(File.join(@folder, "jobs", "inbox", name), "0.01") }

  def test_the_runner_keeps_the_rules
    work = -> { order("j1") }

    assert_empty Pando::Swarm::RunnerLint.check(work: work) { |node| QueueRunner.new(node, @folder) }
  end

  def test_the_runner_gives_back_what_the_dead_had
    order("j1")
    File.write(File.join(@folder, "stall"), "")
    dead = fork do
      runner.start
      sleep
    end
    wait_until(message: "the job's begin") { File.exist?(File.join(@folder, "stall.#{dead}")) }
    Process.kill("KILL", dead)
    Process.wait(dead)

    assert_equal %w[j1], jobs("taken") - ["#{dead}-#{owner}"]
    live = runner.tap(&:start)
    @ledger.ordered("j1")
    died(dead)
    wait_until(message: "the job's end") { live.done == 1 && !live.busy? }
    live.stop

    assert_fine
    assert_equal [1, [], []], [@ledger.repeats["node died"], jobs("inbox"), jobs("taken")]
  end

  def runner = QueueRunner.new(Struct.new(:number, :concurrency).new(0, 2), @folder)
  def owner = Dir.children(File.join(@folder, "jobs", "taken")).first.split("-").last
end
