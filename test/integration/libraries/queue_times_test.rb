# frozen_string_literal: true

require_relative "rows_app"

# Promise: monitoring services and autoscalers show how long a request has waited for a worker, and not how long its
# client took to send it.
class QueueTimesTest < Minitest::Test
  include RowsApp

  parallelize_me! # they wait most of the time

  CONFIG = File.expand_path("../../fixtures/apps/queue_times/config.ru", __dir__)
  # Where each one writes its time, and how many seconds one of its units is.
  SENTRY = [/"http\.server\.request\.time_in_queue":([\d.]+)/, 0.001].freeze
  JUDOSCALE = [/\[\d+,(\d+),"qt"/, 0.001].freeze
  EXPORTER = [/"queue_time":([\d.e-]+)/, 1].freeze
  NEW_RELIC = [%r{"WebFrontend/QueueTime"[^\[]*\[\d+,[\d.e-]+,[\d.e-]+,[\d.e-]+,([\d.e-]+)}, 1].freeze
  DATADOG = [/"waits":\[([\d.e-]+)/, 1].freeze
  # Seconds that the worker is kept busy, that the upload takes at least, and that a service's figure may differ from
  # ours: it looks at the clock later than we do, on a loaded machine far later.
  BUSY = 0.3
  UPLOAD = 0.8
  NEARLY = UPLOAD / 4

  def test_sentry = assert_told("sentry-ruby", *SENTRY)
  def test_judoscale = assert_told("judoscale-ruby", *JUDOSCALE)
  def test_prometheus_exporter = assert_told("prometheus_exporter", *EXPORTER)
  def test_newrelic = assert_told("newrelic_rpm", *NEW_RELIC)
  def test_datadog = assert_told("datadog", *DATADOG)

  # A proxy stamps a request when it begins to come: these two know that the upload is not to be counted.
  def test_sentry_behind_a_proxy = assert_told("sentry-ruby", *SENTRY, proxy: true)
  def test_judoscale_behind_a_proxy = assert_told("judoscale-ruby", *JUDOSCALE, proxy: true)

  private

  def group = "telemetry"

  def assert_told(service, pattern, unit, proxy: false)
    serve(service)
    waited = upload_to_a_busy_worker(proxy)
    assert_operator(waited, :>=, BUSY * 0.9)
    told = nil
    wait_until(message: -> { "#{waited} s from #{service}; it has told #{told}" }, timeout: 30) do
      told = @sink.records.flat_map { |record| record.body.b.scan(pattern).flatten }.map { |text| text.to_f * unit }
      told.any? { |seconds| (seconds - waited).abs < NEARLY }
    end
    assert_operator(told.max, :<, waited + NEARLY)
  end

  def serve(service)
    certificate = @sink.certificate_path(@folder)
    @server = Support::ServerProcess.start(
      arguments: [CONFIG, "-w", "1", "--refork", "false"], config: "timeout 60",
      env: @bundle.environment.merge("APP_SERVICE" => service, "APP_SINK" => @sink.url, "RACK_ENV" => "production",
                                     "APP_SINK_UDP" => @sink.udp_port.to_s, "APP_SINK_TLS" => @sink.tls_port.to_s,
                                     "APP_SINK_CERTIFICATE" => certificate, "SSL_CERT_FILE" => certificate)
    )
  end

  # @return [Float] seconds that the request has waited, as Pando says
  def upload_to_a_busy_worker(proxy)
    holder = Thread.new { @server.get("/held") }
    @server.wait_until_busy(1)
    stamp = "x-request-start: t=#{Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)}\r\n" if proxy
    socket = @server.connect
    socket.write("POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n#{stamp}content-length: 100000\r\n\r\n")
    10.times do
      socket.wait_readable(UPLOAD / 10) # an upload that takes its time
      socket.write("x" * 10_000)
    end
    socket.wait_readable(BUSY)
    File.write(File.join(@server.folder, "go"), "")
    socket.read.split("\r\n\r\n", 2).last.to_f
  ensure
    holder&.join
    socket&.close
  end

  def answers
    {
      %r{\A/agent_listener/.*method=preconnect} => '{"return_value":{"redirect_host":"127.0.0.1"}}',
      %r{\A/agent_listener/.*method=connect} => '{"return_value":{"agent_run_id":"1","data_report_period":1}}',
      %r{\A/agent_listener/} => '{"return_value":null}',
      %r{\A/info} => '{"endpoints":["/v0.4/traces"],"version":"7.50.0"}'
    }
  end
end
