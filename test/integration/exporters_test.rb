# frozen_string_literal: true

require "test_helper"
require "json"
require "support/servers"
require "support/sink"
require_relative "../../bench/support/bundle"

# Promise: other systems get the figures of /metrics through the real gems.
class ExportersTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  FOLDER = File.expand_path("../fixtures/apps/exporters", __dir__)
  OTEL = <<~RUBY
    require "opentelemetry-sdk"
    require "opentelemetry-metrics-sdk"
    require "opentelemetry-exporter-otlp-metrics"
    OpenTelemetry::SDK.configure
    run ->(_env) { [200, {}, ["hi"]] }
  RUBY
  REQUESTS = 30

  def setup
    @bundle = Bench::Bundle.new("exporters", File.join(FOLDER, "Gemfile")).prepare
    @sink = Support::Sink.new(/envelope/ => "{}")
  end

  def teardown
    super
    @sink.close
  end

  # A datagram may get lost, but not on this way.
  def test_statsd_and_reforks
    start('require "datadog/statsd"',
          "StatsD.new(Datadog::Statsd.new('127.0.0.1', #{@sink.udp_port}), every: 0.2)")
    wait_until { lines.any?("pando.workers_ready:2|g|#pool:web") }
    requests
    wait_until { sum("pando.requests:", "method:GET") == REQUESTS }
    wait_until { sum("pando.request_duration_seconds.count:") == REQUESTS }
    wait_until { sum("pando.request_duration_seconds.sum:").between?(0.00001, REQUESTS * 0.5) }
    %w[p50 p95 p99].each do |share|
      wait_until { lines.grep(/\Apando\.request_duration_seconds\.#{share}:[\d.e-]+\|g\|#pool:web\z/).any? }
    end
    wait_until { lines.grep(/\Apando\.memory_private_bytes:\d+\|g\|#role:worker,pool:web\z/).any? }
    2.times do
      @server.refork
      requests
    end

    wait_until { sum("pando.requests:", "method:GET") == REQUESTS * 3 }
    wait_until { sum("pando.reforks:", "outcome:finished") == 2 }
  end

  def test_opentelemetry
    collector = IO.popen([@bundle.environment, RbConfig.ruby, File.join(FOLDER, "collector.rb")])
    port = collector.gets.to_i
    start(OTEL, "OpenTelemetry.new(every: 0.2)",
          { "OTEL_EXPORTER_OTLP_ENDPOINT" => "http://127.0.0.1:#{port}", "OTEL_METRIC_EXPORT_INTERVAL" => "300",
            "OTEL_TRACES_EXPORTER" => "none" })
    requests
    served = value(collector, "pando.requests") do |one|
      one["attributes"] == { "pool" => "web", "method" => "GET", "status" => "2xx" } && one["value"] == REQUESTS
    end
    assert_equal("sum", served["kind"])
    duration = value(collector, "pando.request_duration") { |one| one["count"] == REQUESTS }
    assert_equal(["s", REQUESTS, [0.001, 65.536]],
                 [duration["unit"], duration["buckets"].sum, duration["bounds"].values_at(0, -1)])
    assert_in_delta(REQUESTS * 0.005, duration["sum"], REQUESTS * 0.5)
    assert_equal("By", value(collector, "pando.memory_pss")["unit"])
    assert_equal(2, value(collector, "pando.workers_ready")["value"])
  ensure
    Process.kill(:KILL, collector.pid) if collector
    collector&.close
  end

  def test_yabeda
    start('require "yabeda/prometheus"', "Yabeda.new(every: 0.2)", show: <<~RUBY)
      Thread.new do
        loop do
          sleep 0.05
          File.write("text.new", Prometheus::Client::Formats::Text.marshal(Yabeda::Prometheus.registry))
          File.rename("text.new", "text")
        end
      end
    RUBY
    requests
    # The text may be written between the update of one metric and that of the next.
    wait_until { text.include?("pando_requests_total{pool=\"web\",method=\"GET\",status=\"2xx\"} #{REQUESTS}.0\n") }
    wait_until { text.include?("pando_request_duration_seconds_count{pool=\"web\"} #{REQUESTS}.0\n") }

    assert_includes(text, "pando_workers_ready{pool=\"web\"} 2")
    assert_match(/^pando_memory_pss_bytes{role="monitor",pool=""} \d+/, text)
  end

  # Within five seconds, by the library that the application has.
  def test_a_killed_worker_is_reported_to_sentry
    app = <<~RUBY
      require "sentry-ruby"
      Sentry.init { |config| config.dsn = "http://key@127.0.0.1:#{@sink.port}/1" }
      run ->(env) { sleep if env["PATH_INFO"] == "/held"; [200, {}, ["hi"]] }
    RUBY
    @server = serve(app: app, env: @bundle.environment, config: <<~RUBY)
      workers 1
      refork :manual
      service(:telemetry) do |service|
        service.each_event("worker.killed", "worker.lost") do |event|
          Sentry.capture_message("\#{event.name}: \#{event[:request]}", level: :error, extra: event.payload)
        end
      end
    RUBY
    @server.wait_past("service.ready")
    [0, 1].each do |round|
      client = Thread.new { @server.request("POST", "/held") } # no other worker gets it
      @server.wait_until_busy(1)
      Process.kill(:KILL, @server.workers.first.pid)
      client.join
      killed_at = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      wait_until { @sink.records.count { |one| one.include?("worker.lost: POST /held") } == round + 1 }
      assert_operator(Process.clock_gettime(Process::CLOCK_MONOTONIC) - killed_at, :<, 5)
      @server.wait_for("service.ready") { @server.refork } if round.zero?
    end
  end

  def test_a_missing_gem_is_named
    { "OpenTelemetry.new" => "opentelemetry-metrics-sdk", "Yabeda.new" => "yabeda-prometheus",
      "StatsD.new(nil)" => "dogstatsd-ruby" }.each do |exporter, gem|
      server = serve(config: "workers 1\nservice(:metrics) { |service| Pando::Exporters::#{exporter}.run(service) }")

      assert_includes(server.wait_past("service.lost")["reason"], gem)
    end
  end

  private

  def start(app, exporter, env = {}, show: "")
    app += "\nrun ->(_env) { [200, {}, ['hi']] }" unless app.include?("run")
    @server = serve(app: app, config: <<~RUBY, env: @bundle.environment.merge(env))
      workers 2
      refork :manual
      service(:metrics) do |service|
        #{show}
        Thread.new { (sleep 0.05 while service.notes.text.empty?) || File.write("reported", "") }
        Pando::Exporters::#{exporter}.run(service)
      end
    RUBY
    @server.wait_past("service.ready")
    # The first report of all only tells from where to count.
    wait_until { File.exist?(File.join(@server.folder, "reported")) }
  end

  def requests = REQUESTS.times { @server.get("/") }

  # What StatsD's agent has received.
  def lines = @sink.records.flat_map { |record| record.body.lines(chomp: true) }

  def sum(beginning, tag = nil)
    lines.select { |one| one.start_with?(beginning) && (tag.nil? || one.include?(tag)) }
         .sum { |one| one.delete_prefix(beginning).to_f }
  end

  # @return [Hash] the next value with this name for which the block is true
  def value(collector, name)
    loop do
      assert(collector.wait_readable(60), "nothing came")
      one = JSON.parse(collector.gets)
      return one if one["name"] == name && (!block_given? || yield(one))
    end
  end

  def text
    File.read(File.join(@server.folder, "text"))
  rescue Errno::ENOENT
    ""
  end
end
