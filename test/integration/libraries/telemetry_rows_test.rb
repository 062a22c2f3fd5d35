# frozen_string_literal: true

require_relative "rows_app"
require "open3"
require "openssl"

# Error trackers, tracers, metrics, feature flags, logs and events.
class TelemetryRowsTest < Minitest::Test
  include RowsApp

  parallelize_me! # they wait most of the time

  # What the sink must receive from a process, where that is not the word that the request said.
  SAID = ->(use) { ["#{use["row"]}-in-#{use["worker"]}-said"] }
  ERROR_TRACKERS = {
    "sentry-ruby" => SAID,
    "honeybadger" => ->(use) { ["", " as an event", " as a metric"].map { |kind| SAID.call(use).first + kind } },
    "bugsnag" => SAID,
    "airbrake-ruby" => SAID,
    "rollbar" => SAID
  }.freeze
  TRACERS = {
    "datadog" => SAID,
    "newrelic_rpm" => SAID,
    "scout_apm" => SAID,
    "elastic-apm" => SAID,
    "rorvswild" => SAID,
    "opentelemetry-sdk" => SAID,
    "opentelemetry-metrics-sdk" => SAID
  }.freeze
  METRICS_AND_FLAGS = {
    "statsd-instrument" => SAID,
    "dogstatsd-ruby" => SAID,
    "prometheus-client" => nil,
    "prometheus_exporter" => SAID,
    "yabeda" => nil,
    "yabeda-prometheus" => nil,
    "judoscale-ruby" => ->(use) { [/"pid":#{use["worker"]}\b/] },
    "barnes" => SAID,
    "launchdarkly-server-sdk" => SAID,
    "flipper" => ->(use) { [/^client-pid: #{use["worker"]}$/] }
  }.freeze
  LOGS_AND_EVENTS = {
    "semantic_logger" => SAID,
    "logtail" => SAID,
    "analytics-ruby" => SAID,
    "posthog-ruby" => SAID
  }.freeze

  NEW_RELIC = {
    agent_run_id: "1", data_report_period: 1, collect_custom_events: true,
    event_harvest_config: { report_period_ms: 1000, harvest_limits: { custom_event_data: 100 } }
  }.freeze
  FLIPPER = JSON.generate(features: [{ key: "row", gates: [{ key: "boolean", value: "true" }] }])
  FLAG = { key: "flag", on: true, variations: %w[on off], fallthrough: { variation: 0 }, offVariation: 1, version: 1,
           salt: "salt" }.freeze

  def test_error_trackers = report_from_the_third_generation(ERROR_TRACKERS)
  def test_tracers = report_from_the_third_generation(TRACERS)
  def test_metrics_and_flags = report_from_the_third_generation(METRICS_AND_FLAGS)
  def test_logs_and_events = report_from_the_third_generation(LOGS_AND_EVENTS)

  def test_native_threads_that_datadog_ends_before_a_fork_are_no_finding
    @config = "fork_safety native_threads: :refuse"
    start(%w[datadog-with-native-transport])
    @sink.wait_for(SAID.call(third_generation_uses(%w[datadog-with-native-transport]).first).first)

    refute_includes(@server.events("finding.reported").map { |event| event["kind"] }, "native_thread")
  end

  # The sink gives the flag another variant each time.
  def test_the_third_generation_asks_for_the_flags_of_posthog_again
    start(%w[posthog-ruby])
    first = third_generation_uses(%w[posthog-ruby]).first["result"]["variant"]

    assert_match(/\Afetched-\d+\z/, first)
    wait_until { use("posthog-ruby")["result"]["variant"] != first }
    assert_empty @server.events("finding.reported")
  end

  def test_a_client_of_launch_darkly_that_is_closed_before_a_fork_stays_closed
    @config = "before_fork { LAUNCH_DARKLY.close }"
    start(%w[launchdarkly-server-sdk])

    assert_empty use("threads")["result"].grep(/launchdarkly|ld-eventsource/)
    @server.refork
    assert_empty use("threads")["result"].grep(/launchdarkly|ld-eventsource/)
    assert_empty troubles
  end

  # Clients that note how long they may take.
  CLIENTS = <<~'RUBY'
    require "ldclient-rb"
    require "pando/fork_safety/libraries"
    TOLD = []
    class Client < LaunchDarkly::LDClient
      def initialize(number) = @number = number
      def postfork(seconds)
        TOLD << seconds
        sleep 0.2
        raise "client #{TOLD.size}"
      end
    end
    CLIENTS = Array.new(3) { |number| Client.new(number) }
    Pando::ForkSafety::Libraries.watch
    begin
      Pando::ForkSafety::Libraries::Known.library("launchdarkly-server-sdk").step(:in_child).call
    rescue RuntimeError => error
      print [error.message, TOLD].to_json
    end
  RUBY

  def test_each_client_of_launch_darkly_starts_although_one_cannot_and_all_share_one_deadline
    error, seconds = run_ruby(CLIENTS)

    assert_equal ["client 1", 3], [error, seconds.size]
    assert_operator seconds[0], :<=, 5
    seconds.each_cons(2) { |earlier, later| assert_operator later, :<=, earlier - 0.2 }
  end

  # A collector that is at work while its process is forked.
  COLLECTOR = <<~RUBY
    require "honeybadger/ruby"
    require "timeout"
    require "pando/fork_safety/libraries"
    Honeybadger.configure do |config|
      config.api_key = "key"
      config.backend = "null"
      config.logger = Logger.new(nil)
      config.insights.enabled = true
    end
    CALLS = Queue.new
    GATE = Queue.new
    class Collector
      def tick = 0
      def reset = nil
      def call
        CALLS << self
        GATE.pop
      end
    end
    Honeybadger.increment_counter("count")
    Pando::ForkSafety::Libraries.watch
    Honeybadger::Agent.instance.collect(COLLECTOR = Collector.new)
    CALLS.pop
    reader, writer = IO.pipe
    fork do
      GATE.close
      Pando::ForkSafety::Libraries::Known.library("honeybadger").step(:in_child).call
      calls = Timeout.timeout(30) { Array.new(2) { CALLS.pop } }
      writer.write(calls.map { |one| one.equal?(COLLECTOR) }.to_json)
    end
    writer.close
    print reader.read
    GATE.close
  RUBY

  def test_a_collector_of_honeybadger_that_is_at_work_during_a_fork_goes_on_in_the_child
    assert_equal [true, true], run_ruby(COLLECTOR)
  end

  def test_a_worker_that_leaves_sends_the_events_of_segment_that_wait = leave_with("analytics-ruby")
  def test_a_worker_that_leaves_sends_the_events_of_posthog_that_wait = leave_with("posthog-ruby")

  def test_the_parent_alone_sends_the_events_of_segment_that_wait_at_a_fork = fork_with("analytics-ruby")
  def test_the_parent_alone_sends_the_events_of_posthog_that_wait_at_a_fork = fork_with("posthog-ruby")
  def test_a_child_does_not_wait_for_what_its_parent_sends = fork_with("analytics-ruby", waiting: 0)

  private

  # The sink does not answer to the first event until there is a next generation, so other ones wait.
  def fork_with(row, waiting: 1)
    @hold = Queue.new
    start([row])
    word = SAID.call(use(row)).first
    @sink.wait_for(word)
    waiting.times { use(row) }
    @server.refork
    @hold.close
    @server.wait_for_leavers
    assert_predicate @server.stop, :success?

    assert_equal(1 + waiting, @sink.records.sum { |record| record.body.scan(word).size })
    assert_empty @server.events("work.dropped")
  end

  # The sink does not answer to the first event until the worker has been told to leave, so the second one waits.
  def leave_with(row)
    @hold = Queue.new
    start([row])
    word = SAID.call(use(row)).first
    @sink.wait_for(word)
    use(row)
    leaver = @server.wait_for("worker.leaving") { @server.signal("USR2") }["pid"]
    assert_raises(Support::Waiting::TimedOut, "it waits for the answer") do
      wait_until(timeout: 1) { @server.tree.children.none? { |process| process.pid == leaver } }
    end
    @hold.close
    @server.wait_for_leavers

    assert_equal(2, @sink.records.sum { |record| record.body.scan(word).size })
    assert_empty @server.events("work.dropped")
  end

  # @return [Object] what the script prints, as JSON
  def run_ruby(script)
    output, status = Open3.capture2e(@bundle.environment, "timeout", "60", RbConfig.ruby, "-W0", "-e",
                                     "require 'json'\n#{script}")
    assert_predicate status, :success?, output
    JSON.parse(output)
  end

  # Rollbar has one for each report, Segment one until no event waits.
  def temporary_threads = %r{/(?:rollbar/delay/thread|segment/analytics/client)\.rb\z}

  # @param expected [Hash{String => Proc, nil}] what the sink must receive, by row
  def report_from_the_third_generation(expected)
    start(expected.keys)
    uses = third_generation_uses(expected.keys)
    failures = uses.filter_map { |use| failure(use, expected[use["row"]]) }
    assert_empty failures
    uses.each { |use| assert_result(use) }
  end

  # @return [String, nil] what has not come
  def failure(use, expected)
    expected&.call(use)&.each { |text| @sink.wait_for(text) }
    nil
  rescue Support::Waiting::TimedOut => e
    "#{use["row"]}: #{e.message}"
  end

  def group = "telemetry"
  def config = @config.to_s

  def assert_result(use)
    result = use["result"]
    assert_includes result["text"], SAID.call(use).first if result&.key?("text")
    assert_equal true, result["thread"], use["row"] if result&.key?("thread")
    assert_equal "on", result["flag"], use["row"] if result&.key?("flag")
    assert_equal true, result["enabled"], use["row"] if result&.key?("enabled")
  end

  def environment
    certificate = @sink.certificate_path(@folder)
    { "APP_SINK_TLS" => @sink.tls_port.to_s, "APP_SINK_CERTIFICATE" => certificate, "SSL_CERT_FILE" => certificate }
  end

  def answers
    {
      %r{\A/agent_listener/.*method=preconnect} => '{"return_value":{"redirect_host":"127.0.0.1"}}',
      %r{\A/agent_listener/.*method=connect} => JSON.generate(return_value: NEW_RELIC),
      %r{\A/agent_listener/.*method=get_agent_commands} => '{"return_value":[]}',
      %r{\A/agent_listener/} => '{"return_value":null}',
      %r{\A/(?:v1/\w+|batch)} => ->(_record, _socket) { @hold&.pop || "{}" },
      %r{\A/all} => method(:stream_flags),
      %r{\A/flags/definitions} => method(:next_variant),
      %r{\A/flipper/features} => FLIPPER,
      %r{\A/info} => '{"endpoints":["/v0.4/traces"],"version":"7.50.0"}'
    }
  end

  # PostHog's flags.
  def next_variant(_record, _socket)
    variant = "fetched-#{@variants = @variants.to_i + 1}"
    filters = { groups: [{ rollout_percentage: 100, variant: variant }],
                multivariate: { variants: [{ key: variant, rollout_percentage: 100 }] } }
    JSON.generate(flags: [{ id: 1, key: "row", active: true, filters: filters }], group_type_mapping: {}, cohorts: {})
  end

  # LaunchDarkly's stream of flags: one event, and no end.
  def stream_flags(_record, socket)
    socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: put\ndata: " \
                 "#{JSON.generate(path: "/", data: { flags: { flag: FLAG }, segments: {} })}\n\n")
    socket.read
    nil
  end
end
