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
  FormerRuns = Pando::Swarm::Runners::Sidekiq::FormerRuns
  Whereabouts = Pando::Swarm::Runners::Sidekiq::Whereabouts
  Capsule = Struct.new(:queues)

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
    @holdings = Holdings.new(@config, "us")
    @recovery = Recovery.new(@config, @holdings)
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
    Recovery.new(@config, Holdings.new(@config, "next")).tend
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

  # Should we die just then: another kind of node works on other queues.
  def test_who_takes_over_says_so_before
    ours = nil
    @redis.call("HSET", Holdings::HOLDERS, "ended", JSON.generate(Whereabouts.here.merge("queues" => %w[queue:mail])))
    @redis.call("LPUSH", Holdings.list("ended", "mail"), "job")
    @holdings.stub(:give_back, ->(*) { ours = @redis.call("HGET", Holdings::HOLDERS, "us") }) { @recovery.tend }

    assert_equal(%w[queue:default queue:low queue:mail], JSON.parse(ours)["queues"])
    assert_equal(%w[job], held("us", "mail"))
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
