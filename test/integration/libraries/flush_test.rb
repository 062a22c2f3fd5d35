# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/servers"
require_relative "../../../bench/support/bundle"

# Promise: what telemetry libraries have buffered in a worker is sent before the worker leaves.
class FlushTest < Minitest::Test
  include Support::Servers

  GEMFILE = File.expand_path("../../fixtures/apps/flushed/Gemfile", __dir__)
  # Neither of them would send by itself before the test is over.
  APP = <<~'RUBY'
    require "bundler/setup"
    require "opentelemetry-sdk"
    require "datadog/statsd"

    class Lines < OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter
      def export(spans, timeout: nil)
        spans.each { |span| File.write(ENV.fetch("APP_SPANS"), "#{span.name}\n", mode: "a") }
        OpenTelemetry::SDK::Trace::Export::SUCCESS
      end
    end

    OpenTelemetry::SDK.configure do |config|
      config.add_span_processor(
        OpenTelemetry::SDK::Trace::Export::BatchSpanProcessor.new(Lines.new, schedule_delay: 600_000)
      )
    end
    STATSD = Datadog::Statsd.new("127.0.0.1", Integer(ENV.fetch("APP_PORT")), buffer_max_pool_size: 1000)

    run lambda { |env|
      OpenTelemetry.tracer_provider.tracer("test").in_span(env["PATH_INFO"]) { STATSD.increment("requests") }
      [200, {}, ["pid #{Process.pid}"]]
    }
  RUBY

  def test_spans_and_metrics_arrive_after_a_refork_and_a_stop
    bundle = Bench::Bundle.new("flushed", GEMFILE).prepare
    spans = Tempfile.new("spans")
    port = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    server = serve(app: APP, config: "workers 1\nrefork :manual",
                   env: bundle.environment.merge("APP_SPANS" => spans.path, "APP_PORT" => port.addr[1].to_s))
    3.times { server.get("/before") }
    server.refork
    server.wait_for_leavers
    assert_equal [["/before"] * 3, 3], [spans.readlines(chomp: true), requests(port, 3)]
    2.times { server.get("/after") }

    assert_predicate server.stop, :success?
    assert_equal [["/after"] * 2, 2], [spans.readlines(chomp: true), requests(port, 2)]
  ensure
    port&.close
    spans&.close!
  end

  # Waits for so many. Those who send have ended, so there is no later one.
  # @return [Integer] that the metrics which have arrived tell of
  def requests(port, wanted)
    told = 0
    while port.wait_readable(told < wanted ? 60 : 0)
      told += port.recv(65_536).scan(/^requests:(\d+)\|c/).sum { |count,| count.to_i }
    end
    told
  end
end
