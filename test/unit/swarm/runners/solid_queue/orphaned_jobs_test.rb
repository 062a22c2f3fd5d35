# frozen_string_literal: true

require "test_helper"
require "pando/swarm/runners/solid_queue/orphaned_jobs"

# Whose jobs are given to others. The table is an array.
class SolidQueueOrphanedJobsTest < Minitest::Test
  ProcessIdentity = Pando::Swarm::ProcessIdentity
  Registration = Struct.new(:name, :pid, :last_heartbeat_at, :metadata)
  THRESHOLD = 300 # seconds

  # What the runner asks of Solid Queue.
  class Table
    def initialize(rows) = @rows = rows
    def where = self
    def not(name:) = @rows.reject { |row| name.include?(row.name) }
  end

  def setup
    threshold = Object.new
    threshold.define_singleton_method(:ago) { Time.now - THRESHOLD }
    Object.const_set(:SolidQueue, Module.new)
    SolidQueue.define_singleton_method(:process_alive_threshold) { threshold }
    @child = fork { sleep }
  end

  def teardown
    Object.send(:remove_const, :SolidQueue)
    Process.kill(:KILL, @child)
    Process.wait(@child)
  end

  def dead?(life, silent:, ours: [])
    row = Registration.new("worker-1", life["pid"], Time.now - (silent ? THRESHOLD + 1 : 0), { life: life })
    SolidQueue.const_set(:Process, Table.new([row]))
    Pando::Swarm::Runners::SolidQueue::OrphanedJobs.new("jobs", again: true).send(:dead, ours).any?
  ensure
    SolidQueue.send(:remove_const, :Process)
  end

  # @return [Hash] the identity of a living process
  def other
    stat = File.read("/proc/#{@child}/stat")
    ProcessIdentity.here.merge("pid" => @child, "started" => stat.rpartition(")").last.split[19].to_i)
  end

  def test_a_dead_process_of_this_machine_at_once
    assert dead?(other.merge("started" => 1), silent: false)
  end

  def test_never_one_that_lives_here
    refute dead?(other, silent: true)
  end

  def test_one_elsewhere_when_it_is_silent
    elsewhere = other.merge("place" => "elsewhere")

    refute dead?(elsewhere, silent: false)
    assert dead?(elsewhere, silent: true)
  end

  # It ended while the database was down.
  def test_a_silent_former_run_of_this_process
    refute dead?(ProcessIdentity.here, silent: false)
    assert dead?(ProcessIdentity.here, silent: true)
    refute dead?(ProcessIdentity.here, silent: true, ours: %w[worker-1]), "its jobs still run"
  end
end
