# frozen_string_literal: true

require "English"
require "test_helper"
require "support/sidekiq_redis"

# Promise: what nobody works on any longer goes back to its queue, and nothing else does. Redis is real; of Sidekiq's
# configuration it takes no more than the way to it.
class SidekiqRecoveryTest < Minitest::Test
  include Support::SidekiqRedis

  UnreportedRuns = Pando::Swarm::Runners::Sidekiq::UnreportedRuns
  JOB = '{"jid":"1","class":"Mail"}'

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

  def test_the_log_counts_those_jobs_of_the_dead_that_run_again_and_not_the_buried
    @redis.call("SET", Recovery.deaths("1"), Recovery::DEATHS)
    alone, beside = [[], ['{"jid":"2"}']].map do |others|
      others.each { |job| @redis.call("LPUSH", HeldJobs.list(JOB, "default"), job) }
      warnings { assert_equal(1, events_of("job.buried") { die_with(JOB) }.size) }
    end

    assert_empty(alone)
    assert_equal(["#{JOB} has died, 1 of its jobs run again"], beside)
  end

  # Sidekiq calls the app's death handlers when the job is buried.
  def test_a_death_handler_that_raises_is_told_and_the_other_jobs_run_again
    @redis.call("SET", Recovery.deaths("1"), Recovery::DEATHS)
    @redis.call("LPUSH", HeldJobs.list(JOB, "default"), '{"jid":"2"}')
    dead_set = Object.new
    dead_set.define_singleton_method(:kill) { |_job| raise("handler") }
    Sidekiq::DeadSet.stub(:new, dead_set) { die_with(JOB) }

    assert_equal(%w[handler], @config.errors.map(&:message))
    assert_equal(['{"jid":"2"}'], waiting("default"))
    assert_empty(@redis.call("HKEYS", HeldJobs::HOLDERS))
  end

  # The documented three days begin with the first death.
  def test_later_deaths_do_not_prolong_the_memory_of_the_first_one
    key = Recovery.deaths("1")
    die_with(JOB)
    assert_in_delta(Recovery::REMEMBERED, @redis.call("TTL", key), 5)
    @redis.call("EXPIRE", key, 100)
    die_with(JOB)

    assert_operator(@redis.call("TTL", key), :<=, 100)
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

  private

  def suspects = @redis.call("LRANGE", SuspectJobs.list("queue:default"), 0, -1)

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

  # @return [Array<String>] that Sidekiq's logger writes
  def warnings(&block)
    [].tap { |lines| @config.logger.stub(:warn, ->(&text) { lines << text.call }, &block) }
  end

  def waiting(queue) = @redis.call("LRANGE", "queue:#{queue}", 0, -1)
  def held(identity, queue) = @redis.call("LRANGE", HeldJobs.list(identity, queue), 0, -1)
  def started(pid) = File.read("/proc/#{pid}/stat")[/\) (.*)/m, 1].split[19].to_i

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
