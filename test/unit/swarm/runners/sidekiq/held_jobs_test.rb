# frozen_string_literal: true

require "test_helper"
require "pando/swarm/runners/sidekiq/held_jobs"
require_relative "../../../cluster/support/clock"

# Which of the jobs that Redis lists as ours nobody does.
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
  def on_its_way
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

  def test_a_job_that_is_just_coming_is_none_that_nobody_does
    thread = nil
    @redis.before_read = lambda do
      elapse(0.001) # the processor asks later than we have begun to look
      thread ||= on_its_way
    end
    2.times { @held_jobs.maintain }

    assert_empty @redis.lists[QUEUE], "it is given to another one as well"
    assert_equal [JOB], held
  ensure
    thread&.run
    thread&.join
  end

  def test_a_job_whose_arrival_nobody_heard_of_goes_back_when_all_who_asked_then_have_an_answer
    thread = on_its_way
    @held_jobs.maintain
    elapse(1)
    @held_jobs.maintain

    assert_equal [JOB], held
    thread.kill.join
    elapse(1)
    3.times { @held_jobs.maintain.tap { elapse(1) } }

    assert_equal [[], [JOB]], [held, @redis.lists[QUEUE]]
  end
end
