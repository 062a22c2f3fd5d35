# frozen_string_literal: true

require "test_helper"
require "pando/swarm/runners/sidekiq/held_jobs"
require_relative "../../../cluster/support/clock"

# Finds the jobs that Redis lists as ours and that no processor has.
class SidekiqHeldJobsTest < Minitest::Test
  include ClusterSupport::Clock

  QUEUE = "queue:default"
  JOB = %({"jid":"1"})

  # Stands for Redis and Sidekiq's configuration: lists, and what happens before a list is read.
  class Redis
    attr_reader :lists
    attr_accessor :before_read

    def initialize
      @lists = Hash.new { |lists, name| lists[name] = [] }
    end

    def capsules = { "default" => Struct.new(:queues).new(["default"]) }
    def redis = yield(self)

    def call(name, *arguments)
      case name
      when "LRANGE"
        before_read&.call
        @lists[arguments.first].dup
      when "EVAL"
        _script, _count, from, to, job = arguments
        @lists[to] << job if @lists[from].delete(job)
      end
    end
  end

  # Stands for Sidekiq::SuspectJobs.
  class NoSuspects
    def alone?(_job) = false
  end

  def setup
    super
    @redis = Redis.new
    @held_jobs = Pando::Swarm::Runners::Sidekiq::HeldJobs.new(@redis, "me")
    @held_jobs.suspects = NoSuspects.new
  end

  def held = @redis.lists[@held_jobs.list(QUEUE)]

  # A processor whose job Redis has moved, and that has not received it yet.
  # @return [Thread]
  def fetching_thread
    asked = Queue.new
    thread = Thread.new do
      @held_jobs.fetch do
        held << JOB
        asked << true
        Thread.stop
        [QUEUE, JOB]
      end
    end
    asked.pop
    Thread.pass until thread.stop?
    thread
  end

  def test_a_job_that_is_just_arriving_is_not_given_back
    thread = nil
    @redis.before_read = lambda do
      elapse(0.001) # the processor fetches after the check has begun
      thread ||= fetching_thread
    end
    2.times { @held_jobs.maintain }

    assert_empty @redis.lists[QUEUE], "the job was given to another processor as well"
    assert_equal [JOB], held
  ensure
    thread&.run
    thread&.join
  end

  def test_a_job_whose_reply_was_lost_goes_back_once_all_earlier_fetches_have_ended
    thread = fetching_thread
    @held_jobs.maintain
    elapse(1)
    @held_jobs.maintain

    assert_equal [JOB], held
    thread.kill.join
    elapse(1)
    3.times { @held_jobs.maintain.tap { elapse(1) } }

    assert_equal [[], [JOB]], [held, @redis.lists[QUEUE]]
  end

  # Its processor has died, and the Recovery has given it back.
  def test_a_job_that_another_processor_has_fetched_since_is_not_forgotten
    Thread.new { @held_jobs.fetch { [QUEUE, JOB] } }.join
    assert_equal [[QUEUE, JOB]], @held_jobs.abandoned
    thread = Thread.new { @held_jobs.fetch { [QUEUE, JOB] }.then { Thread.stop } }
    Thread.pass until thread.stop?
    @held_jobs.forget(QUEUE, JOB)

    assert_equal :jobs, @held_jobs.activity_beside(Thread.current)
  ensure
    thread&.kill&.join
  end
end
