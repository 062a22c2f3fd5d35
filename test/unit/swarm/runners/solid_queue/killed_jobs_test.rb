# frozen_string_literal: true

require "test_helper"
require "delegate"
require "pando/events"
require "pando/swarm/runners/solid_queue/orphaned_jobs"

# Promise: a deadly job fails after a few deaths, and no job fails that was only beside it. The tables are arrays.
class SolidQueueKilledJobsTest < Minitest::Test
  KilledJobs = Pando::Swarm::Runners::SolidQueue::KilledJobs

  Job = Struct.new(:id, :arguments) do
    def class_name = "Job#{id}"
    def queue_name = "urgent"
    def active_job_id = "uuid-#{id}"
    def update!(arguments:) = self.arguments = arguments
  end

  # One row is one registration: what it has claimed, and what it remembers.
  Registration = Struct.new(:id, :pid, :metadata, :table) do
    def update!(metadata:) = self.metadata = metadata

    def deregister
      table.claims_of(id).each(&:release)
      table.registrations.delete(self)
    end
  end

  Claim = Struct.new(:job, :process_id, :table) do
    def id = job.id
    def job_id = job.id

    def release
      table.claims.delete(self)
      table.ready << job
    end

    def fail_with(error)
      table.claims.delete(self)
      table.failed << [job.id, error.message]
    end
  end

  # What the runner asks of Solid Queue.
  class Table
    attr_reader :claims, :ready, :failed, :registrations

    def initialize
      @claims = []
      @ready = []
      @failed = []
      @registrations = []
    end

    def claims_of(id) = claims.select { |claim| claim.process_id == id }

    # @param jobs [Array<Job>] what a process had claimed that is dead now
    # @return [Registration]
    def death(*jobs, id: @registrations.size + 10, pid: 4242)
      jobs.each { |job| claims << Claim.new(job, id, self) }
      @ready -= jobs
      Registration.new(id, pid, {}, self).tap { |one| @registrations << one }
    end
  end

  # A query that is an array.
  class Rows < SimpleDelegator
    def order(_) = self
    def includes(_) = self
    def fail_all_with(error) = __getobj__.dup.each { |claim| claim.fail_with(error) }
  end

  def setup
    @table = table = Table.new
    @told = []
    @buried = []
    @subscriptions = [Pando::Events.subscribe("job.killed") { |event| @told << event.payload },
                      Pando::Events.subscribe("job.buried") { |event| @buried << event.payload }]
    Object.const_set(:SolidQueue, Module.new)
    define("ReadyExecution") { |job_id:| table.ready.any? { |job| job.id == job_id } }
    define("ClaimedExecution") { |job_id:| table.claims.any? { |claim| claim.job_id == job_id } }
    SolidQueue::ClaimedExecution.define_singleton_method(:where) do |id: nil, process_id: nil|
      Rows.new(table.claims.select { |claim| id ? claim.id == id : process_id.include?(claim.process_id) })
    end
    errors = SolidQueue.const_set(:Processes, Module.new)
    errors.const_set(:ProcessExitError, Class.new(RuntimeError) do
      def initialize(status) = super("pid=#{status.pid} #{status.exitstatus.inspect} #{status.signaled?}")
    end)
  end

  def teardown
    @subscriptions.each { |one| Pando::Events.unsubscribe(one) }
    Object.send(:remove_const, :SolidQueue)
  end

  def test_a_job_fails_at_the_third_death
    deadly = Job.new(1, { "job_id" => "x" })
    2.times { die(deadly) }

    assert_equal [[deadly], [], []], [@table.ready, @table.failed, @table.registrations]
    die(deadly)
    assert_equal [[], [[1, "pid=4242 nil false"]]], [@table.ready, @table.failed]
    assert_equal({ "job_id" => "x" }, deadly.arguments) # a retry by hand begins anew
    assert_equal([1, 2, 3], @told.map { |event| event[:deaths] })
    assert_equal ["Job1", "uuid-1", 4242, "jobs"], @told.last.values_at(:name, :id, :pid, :node)
    assert_equal(["it runs again", "it runs again", "it has failed"], @told.map { |event| event[:reason] })
    told = { node: "jobs", name: "Job1", id: "uuid-1", queue: "urgent", deaths: 3, reason: "it has failed" }
    assert_equal [told], @buried
  end

  def test_where_nothing_is_to_be_done_again_it_fails_at_once
    settle(@table.death(Job.new(1, {}), Job.new(2, {})), deaths: 1)

    assert_equal [[], [1, 2], []], [@table.ready, @table.failed.map(&:first), @table.registrations]
  end

  def test_a_healthy_job_beside_a_deadly_one_is_tried_without_it
    healthy = Job.new(1, {})
    deadly = Job.new(2, {})
    newcomer = Job.new(3, {})
    die(healthy, deadly)
    assert_equal [healthy, deadly], @table.ready

    kept = die(healthy, deadly, newcomer)
    assert_equal [[newcomer, deadly], [kept]], [@table.ready, @table.registrations]
    settle(kept) # the deadly one is still to be tried
    assert_equal [newcomer, deadly], @table.ready
    third = @table.death(deadly)
    settle(kept)
    assert_equal [newcomer], @table.ready
    settle(third)
    settle(kept)
    assert_equal [[newcomer, healthy], [2], []], [@table.ready, @table.failed.map(&:first), @table.registrations]
  end

  # A newcomer that kills, while a healthy job is tried that was beside another one twice.
  def test_a_healthy_job_does_not_fail_for_what_is_beside_it_when_it_is_tried
    healthy = Job.new(1, { KilledJobs::COUNT => 2 })
    die(healthy, Job.new(2, {}))

    assert_empty @table.failed
  end

  def test_a_deadly_job_that_is_never_alone_fails_in_the_end
    deadly = Job.new(1, {})
    5.times { |number| die(deadly, Job.new(number + 2, {})) }
    assert_empty @table.failed
    die(deadly, Job.new(7, {}))

    assert_equal [1], @table.failed.map(&:first)
  end

  # A node may have several workers.
  def test_all_registrations_of_a_process_are_one
    healthy = Job.new(1, { KilledJobs::COUNT => 1 })
    deadly = Job.new(2, { KilledJobs::COUNT => 1 })
    settle(@table.death(healthy), @table.death(deadly))

    assert_equal [[deadly], 2], [@table.ready, @table.registrations.size]
  end

  # A node that dies before the commit has reported nothing: the next one settles the same deaths again.
  def test_a_death_is_reported_only_once_it_is_settled
    killed = KilledJobs.new("jobs", 3)
    killed.report_after do
      killed.settle([@table.death(Job.new(1, {}))])
      assert_empty @told
    end
    assert_equal 1, @told.size
    assert_raises(IOError) { killed.report_after { killed.settle([@table.death(Job.new(2, {}))]) && raise(IOError) } }
    killed.report_after { assert_equal 1, @told.size }

    assert_equal 1, @told.size
  end

  private

  def define(name, &exists)
    SolidQueue.const_set(name, Module.new).define_singleton_method(:exists?, &exists)
  end

  def die(*jobs) = @table.death(*jobs).tap { |registration| settle(registration) }

  def settle(*registrations, deaths: 3)
    killed = KilledJobs.new("jobs", deaths)
    killed.report_after { killed.settle(registrations) }
  end
end
