# frozen_string_literal: true

require "test_helper"
require "pando/admin/metrics"
require "pando/admin/monitor"
require "pando/cluster/monitor"
require "pando/http"
require "pando/sys/memory"
require_relative "../../../bin/lib/metrics_page"

# The table of metrics, beside the docs and the monitor's records.
class AdminMetricsTest < Minitest::Test
  Metrics = Pando::Admin::Metrics
  Usage = Pando::Sys::Memory::Usage
  RECORDS = [
    ["server", { "pid" => "1", "version" => "9.9", "workers" => "2", "ready" => "2", "state" => "serving",
                 "uptime" => "5.0" }],
    ["listener", { "listen" => "0.0.0.0:80", "waiting" => "3" }],
    ["counters", Hash.new("0").merge("connections" => "7", "idle" => "4", "queued" => "1")],
    ["pool_counters", { "responses" => "40", "queued" => "1", "shed_queue" => "2", "shed_queue_time" => "0" }],
    ["responses", { "method" => "GET", "counts" => "1,0,38,0,2,0" }],
    ["traffic", { "received" => "100", "sent" => "2000" }],
    ["times", { "kind" => "queue", "seconds" => "0.5", "first" => "0", "counts" => "2,1" }],
    ["work", { "threads" => "5", "requests" => "40", "failures" => "0", "cpu" => "1.5", "faults" => "9",
               "minor_gcs" => "3", "major_gcs" => "1", "gc_time" => "0.25", "lock_wait" => "1.5",
               "connections" => "2", "streams" => "0", "unsafe" => "1",
               "code" => "300" }],
    ["group", { "role" => "worker", "state" => "busy", "count" => "1" }],
    ["group", { "role" => "worker", "state" => "idle", "count" => "1" }],
    ["pids", { "role" => "worker", "pids" => "10,11" }],
    ["generation", { "number" => "3", "state" => "current", "age" => "2.5" }],
    ["total", { "event" => "worker.killed", "cause" => "timeout", "count" => "2" }],
    ["total", { "event" => "worker.killed", "cause" => "standstill", "count" => "1" }],
    ["total", { "event" => "generation.discarded", "cause" => "canary", "count" => "1" }]
  ].freeze
  SURVEY = { 10 => Usage.new(30, 10, 90), 11 => Usage.new(20, 5, 80) }.freeze

  def setup
    records = RECORDS.map { |word, pairs| [word, word == "counters" ? traffic.merge(pairs) : pairs] }
    snapshot = Pando::Admin::Snapshot.new(records)
    @families = Metrics.families(snapshot, SURVEY).to_h { |family| [family.name, family.samples] }
  end

  def test_in_direct_mode_the_workers_count_requests
    work = ["work", { "requests" => "40", "failures" => "3", "threads" => "1" }]
    snapshot = Pando::Admin::Snapshot.new([RECORDS.first, work])

    assert_equal({ { pool: "web", method: "unknown", status: "unknown" } => 37,
                   { pool: "web", method: "unknown", status: "5xx" } => 3 },
                 Pando::Admin::MetricsSource.new(snapshot, SURVEY).answers)
  end

  # @return [Hash] values by labels, without the zeros
  def happened(name) = @families["pando_#{name}_total"].reject { |_, count| count.zero? }

  # All that the reactor counts.
  def traffic = Pando::HTTP::Channel.create.stats.transform_values(&:to_s)

  def test_names_and_units_follow_the_conventions
    Metrics.known.each do |one|
      assert_match(/\Apando_[a-z_]+\z/, one.name)
      assert_equal(one.type == :counter, one.name.end_with?("_total"), one.name)
      assert_match(/\A[A-Z1].*\.\z/, one.help)
    end
    assert_equal(Metrics.known.map(&:name).uniq.size, Metrics.known.size)
  end

  def test_the_page_shows_exactly_this_table
    assert_equal(MetricsPage.new.markdown, File.read(MetricsPage::PATH, encoding: "UTF-8"),
                 "run: ruby -Ilib bin/lib/metrics_page.rb")
  end

  def test_labels_are_those_of_the_table
    Metrics.known.each do |one|
      @families.fetch(one.name).each_key { |labels| assert_empty(labels.keys - one.labels, one.name) }
    end
  end

  def test_values_come_from_the_records
    assert_equal({ { state: "idle" } => 4, { state: "active" } => 3 }, @families["pando_connections"])
    assert_equal(38, @families["pando_requests_total"][{ pool: "web", method: "GET", status: "2xx" }])
    assert_equal({ { pool: "web" } => 2000 }, @families["pando_sent_bytes_total"])
    queue = @families["pando_request_queue_seconds"][{ pool: "web" }]
    assert_equal([3, 0.5, 3], [queue.below(0.001), queue.sum, queue.size])
    assert_equal({ { pool: "web", reason: "max_queue" } => 2, { pool: "web", reason: "queue_timeout" } => 0 },
                 @families["pando_queue_shed_total"])
    assert_equal({ { pool: "web", cause: "timeout" } => 2, { pool: "web", cause: "standstill" } => 1 },
                 happened("workers_killed"))
    assert_equal({ { role: "worker", pool: "web", outcome: "killed" } => 3,
                   **%w[exited failed killed lost].to_h { |one| [{ role: "reactor", outcome: one }, 0] } },
                 @families["pando_process_exits_total"])
    assert_equal({ { pool: "web", cause: "canary" } => 1 }, happened("generations_discarded"))
    assert_equal({ { pool: "web" } => 300 }, @families["pando_jit_code_bytes"])
    assert_equal({ { pool: "web" } => 1 }, @families["pando_workers_fork_unsafe"])
    assert_equal({ { pool: "web" } => 5 }, @families["pando_worker_threads"])
    place = { role: "worker", pool: "web" }
    assert_equal({ { **place, state: "busy" } => 1, { **place, state: "idle" } => 1 },
                 @families["pando_processes"].reject { |_, count| count.zero? })
  end

  def test_what_has_not_happened_yet_is_zero
    { "restarts_throttled" => {}, "workers_oom_killed" => {}, "workers_outgrown" => {},
      "workers_killed" => { cause: "other" }, "generations_discarded" => { cause: "mold" },
      "reforks" => { outcome: "refused" }, "requests_timed_out" => { kind: "hard" } }.each do |name, labels|
      assert_equal(0, @families["pando_#{name}_total"][{ pool: "web", **labels }], name)
    end
    known = [*Pando::Admin::MetricsSource::KILLS, "other"]
    assert_equal(known.sort, @families["pando_workers_killed_total"].keys.map { |labels| labels[:cause] }.sort)
  end

  def test_ends_of_processes
    events = { "mold.retired" => 4, "mold.released" => 2, "mold.exited" => 1, "mold.killed" => 1, "mold.ready" => 9,
               "generation.retired" => 5, "app.s.own" => 1, "reactor.lost" => 1, "service.lost" => 1 }
    totals = events.map { |event, count| ["total", { "event" => event, "pool" => "jobs", "count" => count }] }
    ends = Pando::Admin::MetricsSource.new(Pando::Admin::Snapshot.new(totals), {}).exits

    assert_equal({ %w[mold jobs exited] => 7, %w[mold jobs killed] => 1, %w[reactor lost] => 1,
                   %w[service jobs lost] => 1 }, ends.transform_keys(&:values))
    assert_equal(Pando::Cluster::Generations::ENDS, Pando::Admin::MetricsSource::ENDS_OF_MOLDS)
  end

  # A request that was killed for its worker's memory has not timed out.
  def test_requests_that_timed_out
    kills = { "timeout" => "2", "memory" => "5" }.map do |cause, count|
      ["total", { "event" => "request.killed", "cause" => cause, "count" => count }]
    end
    snapshot = Pando::Admin::Snapshot.new([RECORDS.first, ["work", { "requests" => "40", "timeouts" => "4" }], *kills])
    timed_out = Metrics.families(snapshot, {}).find { |one| one.name == "pando_requests_timed_out_total" }

    assert_equal({ { pool: "web", kind: "soft" } => 4, { pool: "web", kind: "hard" } => 2 }, timed_out.samples)
  end

  # Systems to which exporters send them keep the last value of each.
  def test_a_state_that_no_process_has_is_zero
    jobs = { "role" => "worker", "pool" => "jobs", "state" => "idle", "count" => "2" }
    pools = %w[web jobs].map { |name| ["pool", { "name" => name }] }
    records = [RECORDS.first, *pools, ["group", jobs], ["group", { "role" => "reactor", "state" => "ready" }],
               ["generation", { "pool" => "web", "number" => "1" }]] # whose mold was released
    counts = Metrics.families(Pando::Admin::Snapshot.new(records), {}).to_h { |family| [family.name, family.samples] }
                    .fetch("pando_processes").transform_keys(&:values)

    %w[ordered adopted idle busy leaving].each { |state| assert_equal 0, counts[["worker", "web", state]], state }
    assert_equal([2, 0], [counts[%w[worker jobs idle]], counts[%w[worker jobs busy]]])
    %w[ordered adopted ready leaving].each { |state| assert_equal 0, counts[["mold", "web", state]], state }
    assert_equal(0, counts[%w[reactor leaving]])
    assert_equal((2 * 5) + 4 + 4, counts.size)
  end

  def test_states_are_those_that_the_monitor_tells
    names = Pando::Sys::Row::STATES.map(&:name) - ["gone"]

    assert_equal(names, Pando::Admin::MetricsSource::STATES["mold"])
    assert_equal([*names - ["ready"], "idle", "busy"].sort, Pando::Admin::MetricsSource::STATES["worker"].sort)
  end

  def test_causes_are_those_that_the_monitor_counts
    assert_empty(Pando::Admin::MetricsSource::KILLS - Pando::Cluster::Tally::CAUSES.values)
    assert_equal(Pando::Cluster::Tally::FAILURES.map { |event| event.split(".").first }.uniq.sort,
                 Pando::Admin::MetricsSource::FAILURES.sort)
  end

  def test_memory_is_added_up_by_role
    place = { role: "worker", pool: "web" }

    assert_equal([50, 15, 35], %w[pss private shared].map { |kind| @families["pando_memory_#{kind}_bytes"][place] })
  end

  def test_a_released_mold_has_no_memory_and_that_of_one_that_is_not_measured_is_not_known
    mold = { role: "mold", pool: "web" }
    unmeasured = Pando::Admin::Snapshot.new([*RECORDS, ["pids", { "role" => "mold", "pids" => "12" }]])

    assert_equal([0, 0, 0], %w[pss private shared].map { |kind| @families["pando_memory_#{kind}_bytes"][mold] })
    refute_includes Pando::Admin::MetricsSource.new(unmeasured, SURVEY).memory(:pss), mold
  end

  def test_each_counter_of_the_reactor_has_a_name_in_the_table
    names = [*Pando::Admin::MetricsSource::SHED, *Pando::Admin::MetricsSource::REFUSED, *Pando::Admin::MetricsSource::LOST]

    assert_empty(names.map(&:last) - traffic.keys)
    assert_empty(traffic.keys.grep(/\A(?:shed|refused)_/) - names.map(&:last))
  end
end

# Metrics as text: Prometheus 0.0.4 and OpenMetrics 1.0.
class AdminExpositionTest < Minitest::Test
  Family = Pando::Admin::Family
  COUNTER = Family.new("pando_waits_seconds_total", :counter, "seconds", "Time.", { { pool: "web" } => 1.5 }).freeze
  GAUGE = Family.new("pando_things", :gauge, nil, "Things \\ \"quoted\"\nhere.", { {} => 3 }).freeze

  def prometheus(*families) = Pando::Admin::Exposition.new.write(families)
  def openmetrics(*families) = Pando::Admin::Exposition.new(openmetrics: true).write(families)

  def test_a_counter_in_both_formats
    assert_equal(<<~TEXT, prometheus(COUNTER))
      # HELP pando_waits_seconds_total Time.
      # TYPE pando_waits_seconds_total counter
      pando_waits_seconds_total{pool="web"} 1.5
    TEXT
    assert_equal(<<~TEXT, openmetrics(COUNTER))
      # HELP pando_waits_seconds Time.
      # TYPE pando_waits_seconds counter
      # UNIT pando_waits_seconds seconds
      pando_waits_seconds_total{pool="web"} 1.5
      # EOF
    TEXT
  end

  def test_help_is_escaped
    assert_includes(prometheus(GAUGE), "# HELP pando_things Things \\\\ \"quoted\"\\nhere.\n")
    assert_includes(openmetrics(GAUGE), "# HELP pando_things Things \\\\ \\\"quoted\\\"\\nhere.\n")
  end

  def test_label_values_are_escaped
    family = Family.new("pando_things", :gauge, nil, "Things.", { { of: "a\\b\"c\nd", and: "é" } => 1 })

    assert_includes(prometheus(family), "pando_things{of=\"a\\\\b\\\"c\\nd\",and=\"é\"} 1\n")
  end

  def test_numbers_that_are_none
    family = Family.new("pando_things", :gauge, nil, "Things.",
                        { { n: 1 } => Float::INFINITY, { n: 2 } => -Float::INFINITY, { n: 3 } => Float::NAN })

    assert_equal(%w[+Inf -Inf NaN], prometheus(family).lines.drop(2).map { |line| line.split.last })
  end

  def test_a_family_without_values_is_left_out
    assert_empty(prometheus(Family.new("pando_things", :gauge, nil, "Things.", {})))
    assert_equal("# EOF\n", openmetrics)
  end

  def test_a_histogram
    counts = Array.new(Pando::Histogram::BUCKETS, 0)
    counts[0] = 1 # a microsecond
    counts[50] = 3 # some 9 ms
    counts[-1] = 1
    histogram = Pando::Histogram.new(counts, 75.5)
    family = Family.new("pando_wait_seconds", :histogram, "seconds", "Time.", { { pool: "web" } => histogram })

    head, *buckets, infinite, sum, count = prometheus(family).lines(chomp: true).drop(1)
    assert_equal("# TYPE pando_wait_seconds histogram", head)
    assert_equal(17, buckets.size)
    assert_equal(['pando_wait_seconds_bucket{pool="web",le="0.001"} 1',
                  'pando_wait_seconds_bucket{pool="web",le="65.536"} 4'], buckets.values_at(0, -1))
    assert_equal(['pando_wait_seconds_bucket{pool="web",le="+Inf"} 5', 'pando_wait_seconds_sum{pool="web"} 75.5',
                  'pando_wait_seconds_count{pool="web"} 5'], [infinite, sum, count])
  end
end
