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
  Holdings = Pando::Swarm::Runners::Sidekiq::Holdings
  Recovery = Pando::Swarm::Runners::Sidekiq::Recovery
  Trials = Pando::Swarm::Runners::Sidekiq::Trials
  FormerRuns = Pando::Swarm::Runners::Sidekiq::FormerRuns
  Whereabouts = Pando::Swarm::Runners::Sidekiq::Whereabouts
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
    @holdings = holdings_of("us")
    @recovery = Recovery.new(@config, @holdings, "jobs")
  end

  def teardown
    @redis&.stop
    FileUtils.rm_rf(@folder) if @folder
  end

  def test_a_job_whose_arrival_was_never_heard_of_goes_back
    @redis.call("LPUSH", @holdings.list("queue:low"), "job")
    @holdings.tend
    assert_predicate(@holdings, :unsettled?)
    @holdings.tend

    assert_equal(%w[job], waiting("low"))
  end

  # It may be the answer that somebody waits for.
  def test_but_not_while_somebody_asks_who_asked_before
    asking, go_on = Array.new(2) { Queue.new }
    thread = Thread.new { @holdings.fetch { take(asking: asking, go_on: go_on) } }
    asking.pop
    2.times { @holdings.tend }
    assert_empty(waiting("low"))
    go_on << true
    thread.join
    2.times { @holdings.tend }

    assert_empty(waiting("low"))
    @holdings.acknowledge("queue:low", "job")
    assert_empty(held("us", "low"))
  end

  # By its own server: it had been told to stop.
  def test_it_is_not_the_jobs_fault_that_a_node_did_not_end_in_time
    ended = Process.wait(fork { exit!(0) })
    counts = Array.new(Recovery::DEATHS + 2) do
      holder('{"jid":"1"}', Whereabouts.here.merge("pid" => ended, "ending" => true))
      @recovery.tend
      take_all("default")
    end

    assert_equal([1] * counts.size, counts)
  end

  def test_who_is_about_to_end_says_so
    @holdings.fetch { take }
    @holdings.ending
    @holdings.tend

    assert(JSON.parse(@redis.call("HGET", Holdings::HOLDERS, "us"))["ending"])
  end

  # It is with us again before we know that it is back.
  def test_what_goes_back_may_be_fetched_at_once
    ended = Process.wait(fork { exit!(0) })
    holder("job", Whereabouts.here.merge("pid" => ended))
    @config.afterwards = -> { @holdings.fetch { fetch_again("default") } }
    @recovery.tend
    3.times { @holdings.tend }

    assert_empty(waiting("default"))
    assert_equal(%w[job], held("us", "default"))
    @holdings.acknowledge("queue:default", "job")
    assert_empty(held("us", "default"))
  end

  def test_what_a_processor_has_left_undone_is_given_back
    Thread.new { @holdings.fetch { take } }.join
    @recovery.tend

    assert_equal(%w[job], waiting("low"))
  end

  def test_everything_goes_back_at_the_end_but_what_is_done
    @holdings.fetch { take("done") }
    %w[first second].each { |job| @holdings.fetch { take(job) } }
    @holdings.acknowledge("queue:low", "done")
    assert(@holdings.release(0))

    assert_equal(%w[second first], waiting("low")) # from the right, the first one is the next
    assert_empty(@redis.call("HKEYS", Holdings::HOLDERS))
  end

  # The job has run, whatever kept Redis from hearing it; a processor that failed of it would have it run again.
  def test_what_redis_does_not_hear_it_is_told_later
    @holdings.fetch { take }
    @config.away = 1
    @holdings.acknowledge("queue:low", "job")
    assert_equal(%w[job], held("us", "low"))
    @recovery.tend
    @holdings.tend

    assert_empty(held("us", "low") + waiting("low"))
  end

  def test_who_is_interrupted_while_redis_is_told_has_done_its_job_all_the_same
    @holdings.fetch { take }
    told = ->(*) { raise Interrupt }
    assert_raises(Interrupt) { @redis.stub(:call, told) { @holdings.acknowledge("queue:low", "job") } }
    @holdings.release(0)

    assert_empty(held("us", "low") + waiting("low"))
  end

  def test_the_end_waits_for_redis_for_some_time
    @holdings.fetch { take }
    @config.away = 2
    assert(@holdings.release(60))

    assert_equal(%w[job], waiting("low"))
  end

  # Redis away at the end of a run: the next one of the same process knows what was done and what was not.
  def test_the_next_run_tells_what_the_former_could_not
    %w[done undone].each { |job| @holdings.fetch { take(job) } }
    @holdings.tend
    @config.away = 2
    @holdings.acknowledge("queue:low", "done")
    refute(@holdings.release(0))
    FormerRuns.add(@holdings)
    Recovery.new(@config, holdings_of("next"), "jobs").tend
    assert_equal(%w[undone done], held("us", "low"))
    FormerRuns.release

    assert_equal(%w[undone], waiting("low"))
    assert_empty(@redis.call("HKEYS", Holdings::HOLDERS))
    refute(FormerRuns.include?("us"))
  end

  # It lives, and sees to it by itself.
  def test_a_child_does_not_speak_for_its_parents_runs
    FormerRuns.add(@holdings)
    child = fork { exit!(FormerRuns.include?("us") ? 1 : 0) }
    Process.wait(child)

    assert_predicate($CHILD_STATUS, :success?)
    assert(FormerRuns.include?("us"))
  ensure
    FormerRuns.release
  end

  def test_jobs_of_the_dead_go_back_and_those_of_the_living_do_not
    ended = Process.wait(fork { exit!(0) })
    here = Whereabouts.here
    holder("ended", here.merge("pid" => ended))
    holder("reused", here.merge("pid" => Process.ppid, "started" => 1))
    holder("former", here)
    holder("alive", Whereabouts.here.merge("pid" => Process.ppid, "started" => started(Process.ppid)))
    @recovery.tend

    assert_equal(%w[ended former reused], waiting("default").sort)
    assert_equal(%w[alive], @redis.call("HKEYS", Holdings::HOLDERS))
  end

  def test_what_another_kind_of_node_held_goes_back_to_its_own_queue
    @redis.call("HSET", Holdings::HOLDERS, "ended", JSON.generate(dead.merge("queues" => %w[queue:mail])))
    @redis.call("LPUSH", Holdings.list("ended", "mail"), JOB)
    @recovery.tend

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

  def test_of_several_who_find_the_same_dead_one_counts
    holder(JOB, dead)
    others = Array.new(4) { |number| Recovery.new(@config, holdings_of("other#{number}"), "jobs") }
    told = events_of("job.killed") { others.map { |one| Thread.new { one.tend } }.each(&:join) }

    assert_equal([1], told.map { |payload| payload[:deaths] })
    assert_equal([JOB], waiting("default"))
  end

  def test_a_suspect_that_comes_to_its_end_is_none_any_more
    2.times { die_with(JOB) }
    begin_alone
    @holdings.acknowledge("queue:default", JOB)

    assert_empty(suspects + held("us", "default") + @redis.call("KEYS", "pando:sidekiq:[dt]*"))
  end

  def test_a_suspect_that_is_given_back_waits_to_run_alone_again
    2.times { die_with(JOB) }
    begin_alone
    assert_equal([[], [JOB]], [suspects, held("us", "default")])
    assert(@holdings.release(0))

    assert_equal([[JOB], [], []], [suspects, waiting("default"), held("us", "default")])
  end

  # By its own server, which ended it in the midst of a stop.
  def test_and_so_does_one_of_a_node_that_did_not_end_in_time
    holder(JOB, dead.merge("ending" => true))
    @redis.call("SET", Trials.trial(JOB), JOB)
    @recovery.tend

    assert_equal([[JOB], []], [suspects, waiting("default")])
    assert_nil(@redis.call("GET", Recovery.deaths("1")))
  end

  def test_those_elsewhere_are_told_by_their_heartbeat
    holder("silent", "place" => "elsewhere", "pid" => Process.pid)
    holder("beating", "place" => "elsewhere", "pid" => Process.pid)
    @redis.call("HSET", Holdings::HOLDERS, "nonsense", "{")
    @redis.call("SET", "beating", 1)
    @recovery.tend
    assert_empty(waiting("default"))
    Pando::Sys.stub(:now, Pando::Sys.now + Recovery::GRACE + 1) { @recovery.tend }

    assert_equal(%w[silent], waiting("default"))
    assert_equal(%w[beating], @redis.call("HKEYS", Holdings::HOLDERS))
  end

  private

  # @return [Holdings]
  def holdings_of(identity)
    Holdings.new(@config, identity).tap do |holdings|
      holdings.trials = Trials.new(@config, holdings, Recovery.new(@config, holdings, "jobs"))
    end
  end

  def suspects = @redis.call("LRANGE", Trials.list("queue:default"), 0, -1)
  def dead = Whereabouts.here.merge("pid" => Process.wait(fork { exit!(0) }))

  def die_with(job)
    @redis.call("DEL", "queue:default", Trials.list("queue:default"))
    holder(job, dead)
    @recovery.tend
  end

  # As a processor of ours does.
  def begin_alone
    assert_equal(:take, @holdings.trials.turn)
    @holdings.fetch { @holdings.trials.take(%w[queue:low queue:default]) }
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
  def held(identity, queue) = @redis.call("LRANGE", Holdings.list(identity, queue), 0, -1)
  def started(pid) = File.read("/proc/#{pid}/stat")[/\) (.*)/m, 1].split[19].to_i

  # One with a job that is called as it is.
  def holder(identity, where)
    @redis.call("HSET", Holdings::HOLDERS, identity, JSON.generate(where.merge("queues" => ["queue:default"])))
    @redis.call("LPUSH", Holdings.list(identity, "default"), identity)
  end

  # @return [Integer] jobs
  def take_all(queue) = waiting(queue).size.tap { @redis.call("DEL", "queue:#{queue}") }

  def fetch_again(queue)
    ["queue:#{queue}", @redis.call("LMOVE", "queue:#{queue}", @holdings.list("queue:#{queue}"), "RIGHT", "LEFT")]
  end

  # What a processor's fetch does.
  def take(job = "job", asking: nil, go_on: nil)
    @redis.call("LPUSH", @holdings.list("queue:low"), job)
    asking&.push(true)
    go_on&.pop
    ["queue:low", job]
  end
end
