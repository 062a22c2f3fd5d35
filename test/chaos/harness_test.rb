# frozen_string_literal: true

require "test_helper"
require "pando/pidfd"
require "socket"
require "stringio"
require "tempfile"
require "tmpdir"

$LOAD_PATH.unshift(File.join(__dir__, "support"))
require "chaos"

# What a chaos run (chaos_test.rb) finds wrong, and what it finds explained.
class ChaosHarnessTest < Minitest::Test
  def setup
    @file = Tempfile.new("journal")
    @chronicle = Chaos::Chronicle.new(StringIO.new)
    journal = Chaos::Journal.new(@file.path) { |text| @chronicle.violate(text) }
    @ledger = Chaos::Ledger.new(@chronicle, journal: journal)
    @now = Chaos.now
  end

  def teardown
    @file.close!
  end

  def done(*lines) = lines.each { |line| File.write(@file.path, "#{line}\n", mode: "a") }

  # A request that ended now.
  def fate(id, outcome, status: "-", verb: "GET", pid: "-", seconds: 0.5, overslept: 0.0, kind: "kind")
    @ledger.take("#{id} #{kind} #{verb} #{@now - seconds} #{@now} #{outcome} #{status} #{pid} #{overslept}\n")
  end

  def died(role, pid, reason = "signal KILL")
    @chronicle.hear("event" => "#{role}.lost", "pid" => pid, "reason" => reason)
  end

  def assert_fine
    @ledger.judge(all: true)
    assert_empty @chronicle.violations
  end

  def assert_violation(pattern)
    @ledger.judge(all: true)
    assert_match(pattern, @chronicle.violations.join("\n"))
    assert_equal 1, @chronicle.violations.size
  end

  def test_an_answer
    done("POST k1 10")
    fate("k1", :answered, status: 200, verb: "POST", pid: 10)

    assert_fine
    assert_equal [1, 0], [@ledger.total, @ledger.failed]
  end

  def test_an_answer_to_what_was_never_done
    done("POST k1 11")
    fate("k1", :answered, status: 200, verb: "POST", pid: 10)

    assert_violation(/answered by 10, done by \[11\]/)
  end

  def test_what_is_done_twice
    done("GET k1 10", "GET k1 11", "POST k2 10", "POST k2 10")

    assert_violation(/POST k2 was done 2 times, in 10, 10/)
  end

  def test_a_failure_without_a_cause
    fate("k1", :closed)

    assert_violation(/failed without a cause: GET k1 \(kind\) closed/)
  end

  # Its path begins with that of the pool, and so does the report's.
  def test_a_worker_of_the_other_pool_that_died
    done("POST k1 10")
    fate("k1", :refused, status: 502, verb: "POST")
    @chronicle.hear("event" => "worker.lost", "pid" => 10, "reason" => "signal KILL", "pool" => "apart",
                    "request" => "POST /apart/post/k1")

    assert_fine
    assert_equal({ ["502", "worker died"] => 1 }, @ledger.causes)
    done("GET k2 11")
    @chronicle.hear("event" => "worker.lost", "pid" => 10, "pool" => "apart", "request" => "GET /apart/get/k2")
    assert_violation(%r{reported with 10, and done by \[11\]: GET /apart/get/k2})
  end

  # Stands for a connection on which an answer of that pool comes.
  Wire = Struct.new(:pool, :written) do
    def renew = self.written = +""
    def write(bytes) = written << bytes

    def answer(**)
      fields = { "x-id" => "k1", "x-pid" => "1", "x-pool" => pool, "connection" => "close" }
      Chaos::Load::Wire::Answer.new(200, fields, "k1 get")
    end
  end

  def test_an_answer_of_the_wrong_pool
    require "chaos/load/client"
    told = [[nil, ""], [nil, "web"], [nil, "apart"], ["/apart", "apart"], ["/apart", "web"]].map do |place, pool|
      exchange = Chaos::Load::Exchange.new("k1", "get", Random.new(1), place)
      exchange.run(wire = Wire.new(pool))
      assert_match(%r{\AGET #{place}/get/k1 HTTP}, wire.written)
      exchange.outcome
    end

    assert_equal %i[answered answered wrong answered wrong], told
  end

  def test_the_connection_of_a_reactor_that_died
    fate("k1", :closed)
    died("reactor", 5)

    assert_fine
    assert_equal({ ["closed", "reactor died"] => 1 }, @ledger.causes)
  end

  def test_a_reactor_that_died_at_another_time
    died("reactor", 5)
    @now += 60
    fate("k1", :closed)

    assert_violation(/without a cause/)
  end

  def test_a_post_in_a_worker_that_died
    done("POST k1 10")
    died("worker", 10)
    fate("k1", :refused, status: 502, verb: "POST")

    assert_fine
  end

  def test_a_post_in_another_worker
    done("POST k1 11")
    died("worker", 10)
    fate("k1", :refused, status: 502, verb: "POST")

    assert_violation(/without a cause: POST k1 \(kind\) 502/)
  end

  def test_a_worker_that_died_as_it_began_to_answer_itself
    done("POST k1 10", "POST k2 10")
    died("worker", 10)
    fate("k1", :closed, verb: "POST", kind: "upload")

    assert_fine
    fate("k2", :closed, verb: "POST")

    assert_violation(/without a cause: POST k2/)
  end

  def test_a_report_that_names_a_request_of_another_worker
    done("POST k1 10", "POST k2 11")
    @chronicle.hear("event" => "worker.lost", "pid" => 11, "reason" => "signal KILL", "request" => "POST /post/k2")

    assert_fine
    @chronicle.hear("event" => "worker.lost", "pid" => 11, "reason" => "signal KILL", "request" => "POST /post/k1?x")

    assert_violation(%r{reported with 11, and done by \[10\]: POST /post/k1})
  end

  def test_a_get_must_be_tried_again
    done("GET k1 10")
    died("worker", 10)
    fate("k1", :refused, status: 502)

    assert_violation(/without a cause/)
  end

  def test_a_get_that_may_have_killed_its_worker_is_not
    done("GET k1 10")
    died("worker", 10, "signal SEGV")
    fate("k1", :refused, status: 502)

    assert_fine
  end

  def test_what_was_refused_and_yet_done
    done("POST k1 10")
    @chronicle.begin_spell(Chaos::Faults::FullDisk.new(nil, {}))
    fate("k1", :refused, status: 503, verb: "POST")

    assert_violation(/refused, and yet done by \[10\]/)
  end

  def test_a_client_that_is_late_has_itself_to_blame
    fate("k1", :refused, status: 408, verb: "POST", overslept: 0.1)
    fate("k2", :refused, status: 408, verb: "POST", overslept: 6.0)

    assert_violation(/without a cause: POST k1/)
  end

  # A server whose reloads end as the list says; its clients are left out.
  class Reloading
    def initialize(folder, chronicle, outcomes)
      @folder = folder
      @chronicle = chronicle
      @outcomes = outcomes
    end

    def path(name) = File.join(@folder, name)
    def spoil = yield "run app", "workers 1"
    def restore = nil

    def signal(_name)
      number = @outcomes.first["generation"]
      File.write(path("sick"), number.to_s)
      @outcomes.shift(2).each { |event| @chronicle.hear(event) }
    end
  end

  def release_sick(how, requests, *outcomes)
    passed = { "event" => "canary.#{requests ? "passed" : "failed"}", "generation" => 5, "requests" => requests }
    Dir.mktmpdir do |folder|
      scene = Chaos::Scene.new(Reloading.new(folder, @chronicle, [passed, *outcomes]), @chronicle)
      fault = Chaos::Faults::SickRelease.new(scene, "how" => how)
      @chronicle.begin_spell(fault)
      fault.inject
    end
  end

  def reload(outcome, generation) = { "event" => "reload.#{outcome}", "generation" => generation }

  def test_a_sick_release_that_its_canary_shows
    release_sick("raises", nil, reload("failed", 5))

    assert_fine
  end

  def test_a_sick_release_that_passes
    release_sick("leaks", 20, reload("finished", 5), reload("finished", 6))

    assert_violation(/a release that leaks has passed its canary/)
  end

  def test_a_sick_release_that_nobody_asked_anything
    release_sick("raises", 0, reload("finished", 5), reload("finished", 6))

    assert_fine
  end

  def test_what_something_else_may_have_hidden
    @chronicle.begin_spell(Chaos::Faults::FullDisk.new(nil, {}))
    release_sick("leaks", 20, reload("finished", 5), reload("finished", 6))

    assert_fine
    release_sick("raises", 20, reload("finished", 5), reload("finished", 6))
    assert_violation(/a release that raises has passed its canary/)
  end

  # Ruby's report of a crash and what was killed over it leave half lines in the same pipe.
  def test_an_event_behind_half_a_line
    event = { "time" => "2031-05-04T12:03:22.123Z", "event" => "worker.lost", "pid" => 10, "reason" => "signal ABRT" }
    line = "#{JSON.generate(event)}\n"

    assert_equal event, Support::EventLine.parse(line)
    assert_equal event, Support::EventLine.parse("3.1(r[u0bxy7_fr1udn0_a\xFF{#{line}")
    assert_equal event, Support::EventLine.parse("#{line[0, 30]}#{line}")
    assert_nil Support::EventLine.parse(line[0, 40])
    assert_nil Support::EventLine.parse("-- C level backtrace information\n")
  end

  def test_a_seed_replays
    plans = Array.new(2) do
      schedule = Chaos::Schedule.new(7, nil, StringIO.new)
      Array.new(200) { |number| schedule.round(number).to_h }
    end
    other = Chaos::Schedule.new(8, nil, StringIO.new).round(0).to_h

    assert_equal plans.first, plans.last
    refute_equal plans.first.first, other
    assert_equal Chaos::Fault.kinds.map(&:label).sort, plans.first.flat_map { |plan| labels(plan) }.uniq.sort
  end

  # Such as a mold that had been released before.
  def test_a_child_more_may_have_a_socket_and_a_pidfd_in_the_monitor_but_no_more
    before = stock(children: 2)
    sockets = UNIXSocket.pair
    sockets.pop.close
    pidfd = Pando::Pidfd.new(Process.pid)

    assert_empty stock(children: 3).excess(before)
    assert_match(/\Amonitor has \d+ of socket, and may have \d+; .*pidfd/, stock(children: 2).excess(before).join)
    File.open(__FILE__) { assert_match(/harness_test.rb, and may have 0\z/, stock(children: 3).excess(before).join) }
  ensure
    [*sockets, *pidfd].each(&:close)
  end

  def stock(children:)
    roll = Struct.new(:pids) { def one(_role) = nil }
    Chaos::Stock.new(Process.pid, roll.new(Array.new(children)))
  end

  def labels(plan) = plan["faults"].map { |fault| fault["fault"] }

  # Faults overlap: what `current` led to when the second one began was the first one's release.
  def test_a_good_release_comes_back_after_two_bad_ones
    stage = Chaos::Stage.new(StringIO.new, Chaos::Options.new)
    stage.release
    good = File.readlink(stage.path("current"))
    2.times { stage.spoil { |rackup, config| ["raise\n#{rackup}", config] } }

    refute_equal good, File.readlink(stage.path("current"))
    2.times { stage.restore }

    assert_equal good, File.readlink(stage.path("current"))
  ensure
    FileUtils.rm_rf(stage.folder) if stage
  end
end
