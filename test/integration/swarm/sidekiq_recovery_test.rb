# frozen_string_literal: true

require "English"
require "logger"
require "test_helper"
require "tmpdir"
require "pando/swarm/runners/sidekiq/recovery"
require "support/redis_server"

module Sidekiq
  class RedisClientAdapter
    class BaseError < StandardError; end
  end
end

# Promise: what nobody works on any longer goes back to its queue, and nothing else does. Redis is real; of Sidekiq's
# configuration it takes no more than the way to it.
class SidekiqRecoveryTest < Minitest::Test
  DueJobs = Pando::Swarm::Runners::Sidekiq::DueJobs
  HeldJobs = Pando::Swarm::Runners::Sidekiq::HeldJobs
  Recovery = Pando::Swarm::Runners::Sidekiq::Recovery
  SuspectJobs = Pando::Swarm::Runners::Sidekiq::SuspectJobs
  UnreportedRuns = Pando::Swarm::Runners::Sidekiq::UnreportedRuns
  ProcessIdentity = Pando::Swarm::ProcessIdentity
  Capsule = Struct.new(:queues)
  JOB = '{"jid":"1","class":"Mail"}'

  # As much of Sidekiq::Config.
  Config = Struct.new(:server) do
    def capsules = { "default" => Capsule.new(%w[default low]) }
    # So many times it is not there.
    attr_writer :away

    def redis
      @away = @away.to_i - 1
      raise(@error ||= RuntimeError.new("no free connection")) if @away >= 0

      yield(self)
    end

    def multi = yield(self)

    def pipelined
      answers = []
      yield(Struct.new(:ask) { def call(*words) = ask.call(*words) }.new(->(*words) { answers << call(*words) }))
      answers
    end

    # Called once, when a script has run.
    attr_writer :afterwards

    # By the newer protocol, as Sidekiq's client speaks, the first one answers with a Hash.
    def call(name, *words)
      answer = server.call(name, *words)
      name == "EVAL" && @afterwards&.tap { @afterwards = nil }&.call
      name == "HGETALL" ? answer.each_slice(2).to_h : answer
    end

    def logger = @logger ||= Logger.new(IO::NULL)
  end

  def setup
    skip Support::RedisServer.obstacle if Support::RedisServer.obstacle

    @folder = Dir.mktmpdir("pando-recovery")
    @redis = Support::RedisServer.new(@folder).start
    @config = Config.new(@redis)
    @held_jobs = held_jobs_of("us")
    @recovery = Recovery.new(@config, @held_jobs, "jobs")
  end

  def teardown
    @redis&.stop
    FileUtils.rm_rf(@folder) if @folder
  end

  def test_a_job_whose_arrival_was_never_heard_of_goes_back
    @redis.call("LPUSH", @held_jobs.list("queue:low"), "job")
    @held_jobs.maintain
    assert_predicate(@held_jobs, :unsettled?)
    @held_jobs.maintain

    assert_equal(%w[job], waiting("low"))
  end

  # It may be the answer that somebody waits for.
  def test_but_not_while_an_earlier_asker_asks
    asking, go_on = Array.new(2) { Queue.new }
    thread = Thread.new { @held_jobs.fetch { take(asking: asking, go_on: go_on) } }
    asking.pop
    2.times { @held_jobs.maintain }
    assert_empty(waiting("low"))
    go_on << true
    thread.join
    2.times { @held_jobs.maintain }

    assert_empty(waiting("low"))
    @held_jobs.acknowledge("queue:low", "job")
    assert_empty(held("us", "low"))
  end

  # By its own server: it had been told to stop.
  def test_it_is_not_the_jobs_fault_that_a_node_did_not_end_in_time
    ended = Process.wait(fork { exit!(0) })
    counts = Array.new(Recovery::DEATHS + 2) do
      holder('{"jid":"1"}', ProcessIdentity.here.merge("pid" => ended, "ending" => true))
      @recovery.recover_dead
      take_all("default")
    end

    assert_equal([1] * counts.size, counts)
  end

  def test_who_is_about_to_end_says_so
    @held_jobs.fetch { take }
    @held_jobs.ending
    @held_jobs.maintain

    assert(JSON.parse(@redis.call("HGET", HeldJobs::HOLDERS, "us"))["ending"])
  end

  # It is with us again before we know that it is back.
  def test_what_goes_back_may_be_fetched_at_once
    ended = Process.wait(fork { exit!(0) })
    holder("job", ProcessIdentity.here.merge("pid" => ended))
    @config.afterwards = -> { @held_jobs.fetch { fetch_again("default") } }
    @recovery.recover_dead
    3.times { @held_jobs.maintain }

    assert_empty(waiting("default"))
    assert_equal(%w[job], held("us", "default"))
    @held_jobs.acknowledge("queue:default", "job")
    assert_empty(held("us", "default"))
  end

  def test_what_a_processor_has_left_undone_is_given_back
    Thread.new { @held_jobs.fetch { take } }.join
    @recovery.recover_dead

    assert_equal(%w[job], waiting("low"))
  end

  def test_everything_goes_back_at_the_end_but_what_is_done
    @held_jobs.fetch { take("done") }
    %w[first second].each { |job| @held_jobs.fetch { take(job) } }
    @held_jobs.acknowledge("queue:low", "done")
    assert(@held_jobs.release(0))

    assert_equal(%w[second first], waiting("low")) # from the right, the first one is the next
    assert_empty(@redis.call("HKEYS", HeldJobs::HOLDERS))
  end

  # The job has run, whatever kept Redis from hearing it; a processor that failed of it would have it run again.
  def test_what_redis_does_not_hear_it_is_told_later
    @held_jobs.fetch { take }
    @config.away = 1
    @held_jobs.acknowledge("queue:low", "job")
    assert_equal(%w[job], held("us", "low"))
    @recovery.recover_dead
    @held_jobs.maintain

    assert_empty(held("us", "low") + waiting("low"))
  end

  def test_who_is_interrupted_while_redis_is_told_has_done_its_job_all_the_same
    @held_jobs.fetch { take }
    told = ->(*) { raise Interrupt }
    assert_raises(Interrupt) { @redis.stub(:call, told) { @held_jobs.acknowledge("queue:low", "job") } }
    @held_jobs.release(0)

    assert_empty(held("us", "low") + waiting("low"))
  end

  def test_the_end_waits_for_redis_for_some_time
    @held_jobs.fetch { take }
    @config.away = 2
    assert(@held_jobs.release(60))

    assert_equal(%w[job], waiting("low"))
  end

  # Redis away at the end of a run: the next one of the same process knows what was done and what was not.
  def test_the_next_run_tells_what_the_former_could_not
    %w[done undone].each { |job| @held_jobs.fetch { take(job) } }
    @held_jobs.maintain
    @config.away = 2
    @held_jobs.acknowledge("queue:low", "done")
    refute(@held_jobs.release(0))
    UnreportedRuns.add(@held_jobs)
    Recovery.new(@config, held_jobs_of("next"), "jobs").recover_dead
    assert_equal(%w[undone done], held("us", "low"))
    UnreportedRuns.release

    assert_equal(%w[undone], waiting("low"))
    assert_empty(@redis.call("HKEYS", HeldJobs::HOLDERS))
    refute(UnreportedRuns.include?("us"))
  end

  # It lives, and sees to it by itself.
  def test_a_child_does_not_speak_for_its_parents_runs
    UnreportedRuns.add(@held_jobs)
    child = fork { exit!(UnreportedRuns.include?("us") ? 1 : 0) }
    Process.wait(child)

    assert_predicate($CHILD_STATUS, :success?)
    assert(UnreportedRuns.include?("us"))
  ensure
    UnreportedRuns.release
  end

  def test_jobs_of_the_dead_go_back_and_those_of_the_living_do_not
    ended = Process.wait(fork { exit!(0) })
    here = ProcessIdentity.here
    holder("ended", here.merge("pid" => ended))
    holder("reused", here.merge("pid" => Process.ppid, "started" => 1))
    holder("former", here)
    holder("alive", ProcessIdentity.here.merge("pid" => Process.ppid, "started" => started(Process.ppid)))
    @recovery.recover_dead

    assert_equal(%w[ended former reused], waiting("default").sort)
    assert_equal(%w[alive], @redis.call("HKEYS", HeldJobs::HOLDERS))
  end

  def test_what_another_kind_of_node_held_goes_back_to_its_own_queue
    @redis.call("HSET", HeldJobs::HOLDERS, "ended", JSON.generate(dead.merge("queues" => %w[queue:mail])))
    @redis.call("LPUSH", HeldJobs.list("ended", "mail"), JOB)
    @recovery.recover_dead

    assert_equal([[JOB], [], []], [waiting("mail"), held("us", "mail"), held("ended", "mail")])
  end

  def test_each_death_is_told_and_from_the_second_on_a_job_is_to_run_alone
    told = events_of("job.killed") { 3.times { die_with(JOB) } }

    assert_equal([1, 2, 3], told.map { |payload| payload[:deaths] })
    assert_equal(%w[jobs Mail 1], told.first.values_at(:node, :name, :id))
    alone = "it runs again, alone in its node"
    assert_equal(["it runs again", alone, alone], told.map { |payload| payload[:reason] })
    assert_equal([[], [JOB]], [waiting("default"), suspects])
  end

  def test_of_several_that_find_the_same_dead_one_counts
    holder(JOB, dead)
    others = Array.new(4) { |number| Recovery.new(@config, held_jobs_of("other#{number}"), "jobs") }
    told = events_of("job.killed") { others.map { |one| Thread.new { one.recover_dead } }.each(&:join) }

    assert_equal([1], told.map { |payload| payload[:deaths] })
    assert_equal([JOB], waiting("default"))
  end

  def test_a_suspect_that_comes_to_its_end_is_none_any_more
    2.times { die_with(JOB) }
    begin_alone
    @held_jobs.acknowledge("queue:default", JOB)

    assert_empty(suspects + held("us", "default") + @redis.call("KEYS", "pando:sidekiq:[dt]*"))
  end

  def test_a_suspect_that_is_given_back_waits_to_run_alone_again
    2.times { die_with(JOB) }
    begin_alone
    assert_equal([[], [JOB]], [suspects, held("us", "default")])
    assert(@held_jobs.release(0))

    assert_equal([[JOB], [], []], [suspects, waiting("default"), held("us", "default")])
  end

  # By its own server, which ended it in the midst of a stop.
  def test_and_so_does_one_of_a_node_that_did_not_end_in_time
    holder(JOB, dead.merge("ending" => true))
    @redis.call("SET", SuspectJobs.trial(JOB), JOB)
    @recovery.recover_dead

    assert_equal([[JOB], []], [suspects, waiting("default")])
    assert_nil(@redis.call("GET", Recovery.deaths("1")))
  end

  def test_those_elsewhere_are_told_by_their_heartbeat
    holder("silent", "place" => "elsewhere", "pid" => Process.pid)
    holder("beating", "place" => "elsewhere", "pid" => Process.pid)
    @redis.call("HSET", HeldJobs::HOLDERS, "nonsense", "{")
    @redis.call("SET", "beating", 1)
    @recovery.recover_dead
    assert_empty(waiting("default"))
    Pando::Sys.stub(:now, Pando::Sys.now + Recovery::GRACE + 1) { @recovery.recover_dead }

    assert_equal(%w[silent], waiting("default"))
    assert_equal(%w[beating], @redis.call("HKEYS", HeldJobs::HOLDERS))
  end

  def test_due_jobs_are_taken_in_order_and_go_back_with_their_times_when_their_process_has_died
    due = { "schedule" => %w[first 1.5 second 2.25], "retry" => %w[again 1764337266.123456] }
    holder("ended", dead)
    schedule("schedule", "later", Time.now.to_f + 1000)
    due.each { |set, jobs| jobs.each_slice(2).reverse_each { |job, time| schedule(set, job, time) } }
    theirs = DueJobs.new(@config, "ended")
    assert_equal(["first", "second", nil], Array.new(3) { theirs.take("schedule") })
    assert_equal(["again", nil], Array.new(2) { theirs.take("retry") })
    assert_equal([%w[later], []], [scheduled("schedule"), scheduled("retry")])
    2.times { @recovery.recover_dead }

    assert_equal(%w[first second later], scheduled("schedule"))
    due.each { |set, jobs| assert_equal(jobs, scheduled(set, "WITHSCORES").first(jobs.size)) }
    assert_empty(due_keys)
  end

  # Redis is down at the end, so the next run of the same process reports it.
  def test_the_next_run_puts_due_jobs_back_except_those_that_were_pushed
    %w[pushed lost].each { |job| schedule("retry", job, 1) }
    taken = Array.new(2) { @held_jobs.due_jobs.take("retry") }
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
    @held_jobs.due_jobs.take("schedule")
    @held_jobs.due_jobs.postpone("schedule", "job")
    job, time = scheduled("schedule", "WITHSCORES")
    @redis.call("DEL", "schedule")
    @held_jobs.due_jobs.postpone("schedule", "job") # another process has put it back, and run it

    assert_equal("job", job)
    assert_in_delta(Time.now.to_f + DueJobs::AGAIN, time.to_f, 5)
    assert_empty(scheduled("schedule") + due_keys)
  end

  private

  def schedule(set, job, time) = @redis.call("ZADD", set, time, job)
  def scheduled(set, *options) = @redis.call("ZRANGE", set, 0, -1, *options)
  def due_keys = @redis.call("KEYS", "pando:sidekiq:due:*")

  # @return [HeldJobs]
  def held_jobs_of(identity)
    HeldJobs.new(@config, identity).tap do |held_jobs|
      held_jobs.suspects = SuspectJobs.new(@config, held_jobs, Recovery.new(@config, held_jobs, "jobs"))
    end
  end

  def suspects = @redis.call("LRANGE", SuspectJobs.list("queue:default"), 0, -1)
  def dead = ProcessIdentity.here.merge("pid" => Process.wait(fork { exit!(0) }))

  def die_with(job)
    @redis.call("DEL", "queue:default", SuspectJobs.list("queue:default"))
    holder(job, dead)
    @recovery.recover_dead
  end

  # As a processor of ours does.
  def begin_alone
    assert_equal(:take, @held_jobs.suspects.turn)
    @held_jobs.fetch { @held_jobs.suspects.take(%w[queue:low queue:default]) }
  end

  # @return [Array<Hash>]
  def events_of(name)
    told = []
    subscription = Pando::Events.subscribe(name) { |event| told << event.payload }
    yield
    told
  ensure
    Pando::Events.unsubscribe(subscription)
  end

  def waiting(queue) = @redis.call("LRANGE", "queue:#{queue}", 0, -1)
  def held(identity, queue) = @redis.call("LRANGE", HeldJobs.list(identity, queue), 0, -1)
  def started(pid) = File.read("/proc/#{pid}/stat")[/\) (.*)/m, 1].split[19].to_i

  # One with a job that is called as it is.
  def holder(identity, where)
    @redis.call("HSET", HeldJobs::HOLDERS, identity, JSON.generate(where.merge("queues" => ["queue:default"])))
    @redis.call("LPUSH", HeldJobs.list(identity, "default"), identity)
  end

  # @return [Integer] jobs
  def take_all(queue) = waiting(queue).size.tap { @redis.call("DEL", "queue:#{queue}") }

  def fetch_again(queue)
    ["queue:#{queue}", @redis.call("LMOVE", "queue:#{queue}", @held_jobs.list("queue:#{queue}"), "RIGHT", "LEFT")]
  end

  # What a processor's fetch does.
  def take(job = "job", asking: nil, go_on: nil)
    @redis.call("LPUSH", @held_jobs.list("queue:low"), job)
    asking&.push(true)
    go_on&.pop
    ["queue:low", job]
  end
end
