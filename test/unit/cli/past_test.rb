# frozen_string_literal: true

require "test_helper"
require "pando/cli/past"

# What `pando history` makes of the past.
class PastTest < Minitest::Test
  Past = Pando::CLI::Past
  MIB = 1_048_576
  NOON = Time.new(2031, 5, 4, 12, 0, 0).to_i

  # @param after [Integer] seconds after noon @param worker [Integer] MiB, private memory of the workers
  def sample(after, worker, shared: 100, pools: {})
    web = { "workers" => 4, "generation" => 1, "requests" => 2.5, "p95" => 0.0125,
            "memory" => { "0" => 5 * MIB, "1" => worker * MIB } }
    { "t" => NOON + after, "pools" => { "web" => web, **pools }, "shared" => shared * MIB,
      "private" => { "monitor" => 10 * MIB, "worker" => worker * MIB } }
  end

  def event(after, name, more = {})
    { "time" => Time.at(NOON + after).utc.strftime("%FT%T.000Z"), "event" => name, **more }
  end

  def past(hour: [], day: [], events: [], since: NOON)
    Past.new({ "hour" => hour, "day" => day, "events" => events }, since)
  end

  def test_memory_that_has_grown_and_where
    text = past(hour: [sample(0, 200), sample(10, 450, shared: 110)]).text

    assert_includes(text, "Memory of all processes has grown from 310 MiB to 570 MiB since 2031-05-04 12:00:00. The " \
                          "workers' private memory has grown most (+250 MiB).")
    assert_match(/^private, worker +200 +450 +250$/, text)
    assert_match(/^shared +100 +110 +10$/, text)
    assert_match(/^workers +4 +4 +0$/, text)
    assert_match(/^2031-05-04 12:00:10 +570 +460 +110 +4 +1 +2\.50 +12\.50$/, text)
    assert_includes(text, "No refork, reload or reboot since then.")
  end

  def test_shared_memory_that_has_grown
    text = past(hour: [sample(0, 200), sample(10, 200, shared: 130)]).text

    assert_includes(text, "Shared memory has grown most (+30 MiB).")
  end

  def test_memory_that_stays_names_no_cause
    text = past(hour: [sample(0, 200), sample(10, 201, shared: 99)]).text

    assert_match(/\AMemory of all processes is 310 MiB, as it was since [^.]*\.\n/, text)
  end

  def test_memory_that_has_fallen
    assert_match(/has fallen from 310 MiB to 290 MiB .*The workers' private memory has fallen most \(-50 MiB\)\.$/,
                 past(hour: [sample(0, 200), sample(10, 150, shared: 130)]).text)
  end

  def test_the_day_precedes_the_hour_and_what_came_before_does_not_count
    history = past(day: [sample(-120, 1), sample(-60, 2), sample(0, 3), sample(60, 4)], hour: [sample(50, 5)],
                   since: NOON - 60)

    assert_equal([2, 3, 5], history.to_h["samples"].map { |one| one["private"]["worker"] / MIB })
  end

  def test_a_long_time_has_few_rows_and_hides_no_peak
    samples = Array.new(300) { |number| sample(number * 10, 200) }
    samples[100] = sample(1000, 900)
    samples[101]["pools"]["web"] = { "workers" => 4, "generation" => 1, "requests" => 16.5, "p95" => 2.0 }
    text = past(hour: samples).text
    rows = text.lines.grep(/ 12\.50| 2000\.00/)

    assert_equal(24, rows.size)
    assert_includes(rows.first, "12:00:00")
    assert_includes(rows.last, "12:49:50")
    assert_equal([["1,010", "910", "100", "4", "1", "3.50", "2000.00"]],
                 rows.grep(/2000/).map { |row| row.split.drop(2) })
    assert_includes(text, "Each row stands for up to 14 values")
    assert_includes(text, "Memory of all processes is 310 MiB, as it was since 2031-05-04 12:00:00. It was 1010 MiB " \
                          "at 2031-05-04 12:16:40.")
  end

  def test_what_a_refork_has_saved
    events = [event(95, "refork.decided", { "decision" => "refork", "reason" => "sharing has eroded" }),
              event(100, "refork.started", { "slot" => 3, "requests" => 1200, "reason" => "auto" }),
              event(110, "refork.finished", { "generation" => 2, "seconds" => 9.5 })]
    samples = [90, 99, 100, 120, 130, 140].zip([400, 480, 10, 20, 210, 220]).map { |one| sample(*one) }
    history = past(hour: samples, events: events)
    change = history.to_h["changes"].first

    assert_equal({ "time" => NOON + 100.0, "what" => "refork to generation 2, from worker 3 after 1200 requests",
                   "reason" => "sharing has eroded", "seconds" => 9.5, "before" => 485 * MIB, "after" => 215 * MIB,
                   "saved" => 270 * MIB }, change)
    assert_match(/refork to generation 2.* 9\.50 +485 -> 215 +270 +sharing has eroded$/, history.text)
  end

  def test_reforks_that_are_refused_or_under_way_and_reloads_by_pool
    events = [event(10, "refork.started", { "slot" => 1, "requests" => 5, "pool" => "web" }),
              event(11, "refork.refused", { "reason" => "another refork is under way", "pool" => "web" }),
              event(12, "reload.started", { "reason" => "pando reload" }),
              event(13, "reload.failed", { "reason" => "it does not boot" }),
              event(14, "refork.started", { "slot" => 0, "requests" => 7, "pool" => "jobs" }),
              event(15, "refork.finished", { "generation" => 4, "pool" => "jobs" })]
    changes = past(hour: [sample(0, 200)], events: events).changes

    expected = ["refork of web under way, from worker 1 after 5 requests", "refork of web refused", "reload failed",
                "refork of jobs to generation 4, from worker 0 after 7 requests"]
    assert_equal(expected, changes.map(&:what))
    assert_equal([nil, 0.0, 1.0, 1.0], changes.map(&:seconds))
    assert_equal([nil] * 4, changes.map(&:saved))
    assert_equal([nil, "another refork is under way", "it does not boot", nil], changes.map(&:reason))
  end

  def test_a_refork_that_failed
    events = [event(1, "refork.started", { "slot" => 1, "requests" => 5, "generation" => 2, "reason" => "auto" }),
              event(2, "generation.retired", { "generation" => 0, "purpose" => "boot" }),
              event(4, "generation.discarded", { "generation" => 2, "reason" => "its canary died" }),
              event(4, "refork.failed", { "generation" => 2, "reason" => "its canary died", "seconds" => 2.9 }),
              event(4, "refork.postponed", { "reason" => "its canary died" })]
    change, *others = past(hour: [sample(0, 200)], events: events).changes

    assert_empty(others)
    assert_equal(["refork to generation 2 failed, from worker 1 after 5 requests", "its canary died", 2.9, nil],
                 [change.what, change.reason, change.seconds, change.saved])
  end

  # A refork that is refused before it begins leaves one that is under way.
  def test_a_refork_that_began_and_was_refused_then_has_one_row
    refused = { "generation" => 2, "source" => 44, "reason" => "a long job" }
    events = [event(1, "refork.started", { "slot" => 1, "requests" => 5, "generation" => 2 }),
              event(2, "refork.refused", { "source" => 45, "reason" => "no process" }),
              event(3, "refork.refused", refused),
              event(3, "refork.failed", { "generation" => 2, "reason" => "a long job", "seconds" => 2.0 })]
    changes = past(hour: [sample(0, 200)], events: events).changes

    assert_equal([["refork to generation 2 failed, from worker 1 after 5 requests", "a long job", 2.0],
                  ["refork refused", "no process", 0.0]],
                 changes.map { |one| [one.what, one.reason, one.seconds] })
  end

  def test_a_refork_that_is_taken_back_after_its_rollout_has_saved_nothing
    events = [event(100, "refork.started", { "slot" => 3, "requests" => 1200, "generation" => 2, "reason" => "auto" }),
              event(110, "refork.finished", { "generation" => 2, "seconds" => 9.5 }),
              event(120, "watch.failed", { "generation" => 2, "reason" => "more errors" }),
              event(120, "generation.discarded", { "generation" => 2, "reason" => "more errors" }),
              event(120, "refork.failed", { "generation" => 2, "reason" => "more errors", "seconds" => 19.5 })]
    samples = [90, 140].zip([400, 210]).map { |one| sample(*one) }
    change, *others = past(hour: samples, events: events).changes

    assert_empty(others)
    assert_equal(["refork to generation 2 taken back, from worker 3 after 1200 requests", "more errors", 9.5, nil],
                 [change.what, change.reason, change.seconds, change.saved])
  end

  def test_a_reboot
    events = [event(1, "reboot.started", { "reason" => "a leak" }), event(2, "reboot.finished", { "generation" => 3 })]

    assert_equal([["reboot to generation 3", "a leak"]],
                 past(hour: [sample(0, 200)], events: events).changes.map { |one| [one.what, one.reason] })
  end

  def test_a_reason_of_the_app_does_not_control_the_terminal
    events = [event(1, "reload.started"), event(2, "reload.failed", { "reason" => "\e[2Jgone" })]

    refute_includes(past(hour: [sample(0, 200)], events: events).text, "\e")
  end

  def two_pools(pool = nil)
    jobs = { "workers" => 2, "generation" => 7, "requests" => 0.0 }
    samples = [[90, 30], [140, 5]].map do |time, size|
      sample(time, 200, pools: { "jobs" => { **jobs, "memory" => { "7" => size * MIB } } })
    end
    events = [event(100, "refork.started", { "slot" => 0, "requests" => 7, "pool" => "jobs" }),
              event(101, "refork.finished", { "generation" => 7, "pool" => "jobs" }),
              event(102, "refork.refused", { "reason" => "off", "pool" => "web" }), event(103, "reload.started")]
    Past.new({ "hour" => samples, "day" => [], "events" => events }, NOON, pool)
  end

  def test_two_pools_have_tables_of_their_own
    text = two_pools.text

    assert_match(/^Pool web\ntime +workers +generation +req.s +p95 ms +queue ms\n.* 4 +1 +2\.50 +12\.50$/, text)
    assert_match(/^Pool jobs\ntime .*\n.* 2 +7 +0$/, text)
    assert_match(/^workers +6 +6 +0$/, text)
  end

  def test_a_refork_has_saved_memory_of_its_own_pool
    assert_equal([30 * MIB, 5 * MIB], two_pools.changes.first.then { |one| [one.before, one.after] })
  end

  def test_one_pool
    history = two_pools("jobs")

    assert_equal(["refork of jobs to generation 7, from worker 0 after 7 requests", "reload under way"],
                 history.changes.map(&:what))
    assert_match(/^time +MiB +private +shared +workers +generation/, history.text)
    assert_equal("there is no pool x, but web, jobs", assert_raises(Pando::UsageError) { two_pools("x") }.message)
  end

  def test_nothing_is_known
    assert_predicate(past(day: [sample(-60, 1)]), :empty?)
    assert_empty(past.to_h["memory"])
  end
end
