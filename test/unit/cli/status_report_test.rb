# frozen_string_literal: true

require "test_helper"
require "json"
require "minitest/mock"
require "pando/cli"
require "pando/cli/status_report"

# What `pando status` makes of the monitor's records.
class StatusReportTest < Minitest::Test
  SERVER = { "pid" => "1", "version" => "1.0", "state" => "serving", "workers" => "2", "ready" => "1",
             "uptime" => "3.0", "reforks" => "0" }.freeze

  def report(*records, **server)
    Pando::CLI::StatusReport.new([["server", { **SERVER, **server.transform_keys(&:to_s) }], *records])
  end

  def test_who_dies_too_often_what_went_wrong_and_how_many_workers
    text = report(["throttle", { "role" => "worker", "slot" => "1", "rate" => "5", "seconds" => "0.5",
                                 "reason" => "KILL" }],
                  ["throttle", { "role" => "service", "name" => "mailer", "rate" => "1", "seconds" => "0.0" }],
                  ["throttle", { "role" => "worker", "generation" => "2", "rate" => "2", "seconds" => "4.0",
                                 "reason" => "status 1" }],
                  ["counts", { "worker_lost" => "5", "oom_killed" => "2" }], sizing: "8 CPUs").text

    ["worker 1: lost 5 times within a minute, next attempt in 0.5 s (KILL)\n",
     "service mailer: lost 1 time within a minute ()\n",
     "worker of generation 2: lost 2 times within a minute, next attempt in 4.0 s (status 1)\n",
     "since the server started: 5 worker.lost, 2 oom.killed\n", "workers :auto (8 CPUs)"].each do |line|
      assert_includes text, line
    end
  end

  def test_what_is_waited_for
    watched = { "number" => "1", "state" => "current", "purpose" => "reload", "age" => "2.0" }
    text = report(["generation", { **watched, "watch" => "7 requests in 2 s" }], reloading: "true").text

    assert_match(/\Apando 1.0, serving for 3 s: .*; a reload is in progress\n/, text)
    assert_includes text, "started 2 s ago; Pando watches it; it has served 7 requests in 2 s\n"
    unproven = { **watched, "watch" => "0 requests in 2 s", "unproven" => "no request came" }
    assert_includes report(["generation", unproven]).text, "has served 0 requests in 2 s; unproven: no request came\n"
    assert_includes report(["generation", { **watched, "released" => "true" }]).text, "ago; its mold was released\n"
    assert_match(/\Apando 1.0, draining, up for 3 s: /, report(state: "draining").text)
  end

  def test_how_it_stands_with_reforking
    refork = { "phase" => "paying", "decided" => "settle: it has 1.0% less", "waits" => "a refork would pay at 900",
               "saving" => "0.04", "cost" => "80", "pss" => "1048576", "age" => "700" }

    assert_includes report(["refork", refork]).text,
                    "refork :auto is paying; last decision: settle: it has 1.0% less; now: a refork would pay at 900\n"
    assert_equal [0.04, 80, 1_048_576, 700.0],
                 JSON.parse(report(["refork", refork]).json)["refork"].values_at("saving", "cost", "pss", "age")
    assert_includes report(["refork", { "phase" => "warming" }]).text, "refork :auto is warming\n"
  end

  def test_what_refork_auto_prefers_unless_it_is_the_default
    balanced, memory = %w[balanced memory].map { |one| ["refork", { "prefer" => one, "phase" => "warming" }] }

    assert_includes report(balanced).text, "refork :auto is warming\n"
    assert_includes report(memory).text, "refork :auto, prefer: :memory, is warming\n"
    assert_equal "memory", JSON.parse(report(memory).json)["refork"]["prefer"]
  end

  def test_a_leak_that_is_handed_down
    leak = { "pool" => "web", "rate" => "262144", "before" => "1048576", "after" => "200", "bytes" => "3145728",
             "requests" => "900", "waits" => "it does not pay yet" }

    assert_includes report(["leak", leak]).text,
                    "each request of web leaks 256.0 KiB that molds hand down: 1.0 MiB after 200 requests, " \
                    "3.0 MiB after 900; no cold boot: it does not pay yet\n"
    one, = JSON.parse(report(["leak", leak]).json)["leaks"]
    assert_equal [262_144, 1_048_576, 200, 3_145_728, 900],
                 one.values_at("rate", "before", "after", "bytes", "requests")
  end

  def test_workers_that_are_not_promoted_for_what_a_request_has_changed
    changed = { "slot" => "1", "generation" => "0", "pid" => "7", "reason" => "nice 0 -> 7.\e Put it back." }

    assert_includes report(["changed_state", changed]).text, "no refork from worker 1: nice 0 -> 7.? Put it back."
    one, = JSON.parse(report(["changed_state", changed]).json)["changed_states"]
    assert_equal [1, 7, changed["reason"]], one.values_at("slot", "pid", "reason")
  end

  def test_paths_that_are_refused
    refused = { "request" => "GET /deadly\e", "seconds" => "41.2" }

    assert_includes report(["refused_path", refused]).text,
                    "\nGET /deadly? gets 503 for 42 s more, because it has killed workers\n"
    assert_equal [{ **refused, "seconds" => 41.2 }], JSON.parse(report(["refused_path", refused]).json)["refused_paths"]
    assert_includes report(["refused_path", { **refused, "pool" => "web" }]).text, "GET /deadly? of web gets 503"
  end

  def test_a_canary_is_one_more_than_are_wanted
    assert_includes report(ready: "3").text, ": 2 of 2 workers and 1 more ready, "
    assert_includes report(threads: "5").text, ": 1 of 2 workers with 5 threads each ready, "
  end

  def test_pools_with_different_numbers_of_threads_say_them_themselves
    web = { "name" => "web", "kind" => "worker", "workers" => "2", "ready" => "2" }
    live = { "name" => "live", "kind" => "worker", "workers" => "1", "ready" => "1", "threads" => "64" }
    text = report(["pool", web], ["pool", live]).text

    assert_includes(text, ": 1 of 2 workers ready, ")
    assert_includes(text, "\nweb: 2 of 2 workers ready, ")
    assert_includes(text, "\nlive: 1 of 1 worker with 64 threads each ready, ")
  end

  def test_nodes_alone_are_called_so
    node = { "pool" => "sidekiq", "slot" => "0", "state" => "idle", "running" => "0", "failed" => "0" }
    records = [["pool", { "name" => "sidekiq", "kind" => "node", "workers" => "2", "ready" => "1" }], ["worker", node]]
    text = report(*records).text

    assert_match(/: 1 of 2 nodes ready, /, text)
    refute_match(/^sidekiq:/, text)
    assert_match(/^sidekiq node 0 /, text)
    assert_equal([%w[sidekiq node]], JSON.parse(report(*records).json)["pools"].map do |one|
      one.values_at("name", "kind")
    end)
  end

  def test_full_collections
    workers = [{ "full" => "2" }, { "full" => "1", "major_gc_due" => "true" }, {}].map { |pairs| ["worker", pairs] }

    assert_includes report(*workers).text, "major GCs: 3 in 3 workers; 1 worker to be replaced instead of running one"
    refute_includes report(["worker", { "full" => "0" }]).text, "major GCs"
    assert_equal([2, 1], JSON.parse(report(*workers).json)["processes"].filter_map { |process| process["full"] })
  end

  def test_of_several_pools_each_has_its_own
    pools = [%w[web worker 2], %w[jobs node 1]].flat_map do |name, kind, count|
      [["pool", { "name" => name, "kind" => kind, "workers" => count, "ready" => count, "reforks" => count }],
       ["refork", { "pool" => name, "phase" => "warming" }]]
    end
    text = report(*pools, quiet: "true").text

    assert_match(/\Apando 1.0, .*: 2 of 2 workers ready, 1 of 1 node ready, 0 reforks since the last cold boot/, text)
    assert_includes text, "web: 2 of 2 workers ready, 2 reforks since the last cold boot\n" \
                          "jobs: 1 of 1 node ready, 1 refork since the last cold boot\n"
    assert_includes text, "refork :auto of jobs is warming\n"
    assert_match(/\A.*; job nodes take no new jobs\n/, text)
    assert_equal(%w[web jobs], JSON.parse(report(*pools).json)["pools"].map { |pool| pool["refork"]["pool"] })
  end

  def test_json_has_numbers
    shown = JSON.parse(report(["throttle", { "role" => "mold", "rate" => "5", "seconds" => "0.5" }],
                              ["counts", { "oom_killed" => "2" }]).json)

    assert_equal [{ "role" => "mold", "rate" => 5, "seconds" => 0.5 }], shown["throttled_restarts"]
    assert_equal({ "oom_killed" => 2 }, shown["counts"])
  end

  def test_warm_workers
    worker = { "slot" => "0", "generation" => "0", "state" => "busy", "job" => "GET /", "seconds" => "0.1",
               "code" => "1048576", "kinds" => "7", "faults" => "2.5" }
    shown = JSON.parse(report(["worker", worker]).json)["processes"].last

    assert_equal [1_048_576, 7, 2.5], shown.values_at("code", "kinds", "faults")
    assert_match(%r{worker 0 .* busy .* GET / for 0.1 s$}, report(["worker", worker]).text)
    assert_match(/for 0.1 s; not fork-safe$/, report(["worker", { **worker, "unsafe" => "true" }]).text)
  end

  def test_the_bound_of_the_compilers_code
    worker = { "slot" => "0", "pid" => "7", "requests" => "2000", "code" => "5" }
    shown = nil
    Pando::Sys::CodeRegion.stub(:of, Pando::Sys::CodeRegion.new(2 << 20, 48 << 20)) do
      shown = report(["worker", { **worker, "pid" => "8", "code" => "4" }], ["worker", worker]).text
    end

    assert_match(/^YJIT: 2.0 MiB of 48.0 MiB for code in use; --yjit-exec-mem-size=8 is enough$/, shown)
  end

  def test_where_all_is_well_nothing_is_said_of_it
    refute_match(/lost|since the server|auto/, report.text)
  end
end
