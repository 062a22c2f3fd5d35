# frozen_string_literal: true

require "test_helper"
require "pando/swarm/runners/sidekiq/recovery"
require_relative "../../../cluster/support/clock"

# What processors do while suspects wait to run alone.
class SidekiqSuspectJobsTest < Minitest::Test
  include ClusterSupport::Clock

  SuspectJobs = Pando::Swarm::Runners::Sidekiq::SuspectJobs
  QUEUE = "queue:default"

  # Stands for a pipeline.
  Pipe = Struct.new(:redis, :answers) do
    def call(*command) = answers << redis.call(*command)
  end

  # Stands for Redis: how many suspects there are, and whose turn it is to make room.
  class Redis
    attr_accessor :suspects, :room
    attr_reader :forgotten

    def initialize
      @suspects = []
      @room = true
      @forgotten = []
    end

    def redis = yield(self)
    def pipelined(&block) = Pipe.new(self, []).tap(&block).answers

    def call(name, *arguments)
      case name
      when "LLEN" then @suspects.size
      when "EVAL" then (job = @suspects.shift) && [0, job]
      when "SET" then ("OK" if @room)
      when "UNLINK" then @forgotten << arguments.first
      end
    end
  end

  # Stands for HeldJobs.
  HeldJobs = Struct.new(:others) do
    def identity = "me"
    def queues = [QUEUE]
    def list(queue) = "held:#{queue}"
    def activity_beside(_thread) = others
  end

  # Stands for Recovery.
  class Recovery
    attr_reader :looks

    def initialize = @looks = 0
    def recover_dead = @looks += 1
  end

  def setup
    super
    @redis = Redis.new
    @held_jobs = HeldJobs.new
    @suspects = SuspectJobs.new(@redis, @held_jobs, @recovery = Recovery.new)
  end

  # The turn of another processor.
  def elsewhere = Thread.new { @suspects.turn }.value

  def test_without_suspects_jobs_are_fetched_after_one_search_for_dead_processes
    assert_equal %i[fetch fetch], Array.new(2) { @suspects.turn }
    assert_equal 1, @recovery.looks
  end

  def test_a_new_process_runs_the_suspects_first
    @redis.suspects << "one" << "two"

    assert_equal :take, @suspects.turn
    assert_equal [QUEUE, "one"], @suspects.take([QUEUE])
    assert @suspects.alone?("one")
    assert_equal :wait, elsewhere
    assert_equal :take, @suspects.turn # the first has ended
    assert_equal [QUEUE, "two"], @suspects.take([QUEUE])
    @suspects.turn
    assert_nil @suspects.take([QUEUE])
    assert_equal :fetch, elsewhere
  end

  def test_a_finished_suspect_is_forgotten
    @redis.suspects << "one"
    @suspects.turn
    @suspects.take([QUEUE])
    @suspects.finish

    refute @suspects.alone?("one")
    assert_equal ["pando:sidekiq:trial:me"], @redis.forgotten
  end

  def test_a_processor_that_has_died_does_not_block_the_others
    @redis.suspects << "one" << "two"
    Thread.new { @suspects.turn }.join

    assert_equal :take, @suspects.turn
  end

  def test_a_suspect_waits_until_all_fetches_have_ended
    @redis.suspects << "one"
    @held_jobs.others = :fetches

    assert_equal :wait, @suspects.turn
    @held_jobs.others = nil
    assert_equal :take, @suspects.turn
  end

  def test_a_busy_process_makes_room_only_after_a_long_wait
    @redis.suspects << "one"
    @held_jobs.others = :jobs
    assert_equal :fetch, @suspects.turn
    elapse(SuspectJobs::PATIENCE + 1)
    @suspects.update
    assert_equal :wait, @suspects.turn
    elapse(SuspectJobs::LONGEST + 1)

    assert_equal :fetch, @suspects.turn
  end

  def test_one_process_makes_room_at_a_time
    @redis.suspects << "one"
    @held_jobs.others = :jobs
    @suspects.turn
    @redis.room = false
    elapse(SuspectJobs::PATIENCE + 1)
    @suspects.update

    assert_equal :fetch, @suspects.turn
  end
end
