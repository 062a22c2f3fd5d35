# frozen_string_literal: true

# Error trackers, tracers and metrics.
Pando::ForkSafety::Libraries::Known.define do
  describe "sentry-ruby", constant: "Sentry::Client" do
    fine since: "5.2.0",
         note: "Its threads are started again in a child when there is something to send.",
         source: "https://github.com/getsentry/sentry-ruby/blob/5.2.0/sentry-ruby/lib/sentry/session_flusher.rb"
  end

  describe "datadog", constant: "Datadog::Core" do
    fine since: "2.3.0",
         note: "Its threads are started again in a child.",
         source: "https://github.com/DataDog/dd-trace-rb/commit/b55c33fc04"
    fine before: "2.3.0",
         note: "The tracer's threads are started again in a child, the profiler is not.",
         source: "https://github.com/DataDog/dd-trace-rb/blob/v2.0.0/lib/datadog/core/workers/async.rb"
  end

  describe "ddtrace", constant: "Datadog::Tracing" do
    fine since: "1.0.0",
         note: "The tracer's threads are started again in a child, the profiler is not.",
         source: "https://github.com/DataDog/dd-trace-rb/blob/v1.0.0/lib/datadog/core/workers/async.rb"
  end

  describe "newrelic_rpm", constant: "NewRelic::Agent::Agent" do
    fine since: "3.8.0",
         note: "The first request in a child starts its thread again.",
         source: "https://github.com/newrelic/newrelic-ruby-agent/blob/dev/CHANGELOG.md (3.8.0)"
  end

  describe "opentelemetry-sdk", constant: "OpenTelemetry::SDK" do
    fine since: "0.12.1",
         note: "The thread that sends spans is started again in a child.",
         source: "https://github.com/open-telemetry/opentelemetry-ruby/blob/main/sdk/CHANGELOG.md (0.12.1)"
    # Until it is configured there is a stand-in, which cannot.
    flush do |seconds|
      provider = OpenTelemetry.tracer_provider
      provider.force_flush(timeout: seconds) if provider.respond_to?(:force_flush)
    end
  end

  describe "opentelemetry-metrics-sdk", constant: "OpenTelemetry::SDK::Metrics" do
    fine since: "0.7.1",
         note: "The thread that sends metrics is started again in a child.",
         source: "https://github.com/open-telemetry/opentelemetry-ruby/blob/main/metrics_sdk/CHANGELOG.md (0.7.1)"
  end

  describe "honeybadger", constant: "Honeybadger::Agent" do
    fine since: "4.0.0",
         note: "Its thread is started again in a child when there is something to send.",
         source: "https://github.com/honeybadger-io/honeybadger-ruby/blob/v4.0.0/lib/honeybadger/worker.rb"
  end

  describe "bugsnag", constant: "Bugsnag::Configuration" do
    fine since: "3.0.0",
         note: "Its thread is started again in a child when there is something to send.",
         source: "https://github.com/bugsnag/bugsnag-ruby/commit/61028f11"
  end

  describe "airbrake-ruby", constant: "Airbrake::AsyncSender" do
    fine since: "1.0.3",
         note: "Its threads are started again in a child when there is something to send.",
         source: "https://github.com/airbrake/airbrake-ruby/commit/ff88d3f"
  end

  describe "rollbar", constant: "Rollbar::Notifier" do
    fine note: "It has no thread that lives on: it sends at once, or with a thread for each report.",
         source: "https://github.com/rollbar/rollbar-gem/blob/master/lib/rollbar/delay/thread.rb"
  end

  describe "appsignal", constant: "Appsignal::Extension" do
    handled since: "0.5.3",
            note: "Its extension is started in each child, as its own integrations do it.",
            source: "https://github.com/appsignal/appsignal-ruby/blob/main/lib/appsignal/integrations/unicorn.rb"
    in_child { Appsignal.forked }
  end

  describe "scout_apm", constant: "ScoutApm::Agent" do
    yours note: "A child lacks the thread that sends, and its middleware believes that it runs.",
          advice: "after_worker_fork { ScoutApm::Agent.instance.start_background_worker }",
          source: "https://github.com/scoutapp/scout_apm_ruby/blob/master/lib/scout_apm/server_integrations/unicorn.rb"
  end

  describe "prometheus-client", constant: "Prometheus::Client" do
    fine since: "1.0.0",
         note: "Metrics in memory are counted by process; DirectFileStore opens a file for each.",
         source: "https://github.com/prometheus/client_ruby/blob/v1.0.0/lib/prometheus/client/data_stores/README.md"
  end

  describe "statsd-instrument", constant: "StatsD::Instrument" do
    fine since: "3.3.0",
         note: "The thread that sends is started again in a child.",
         source: "https://github.com/Shopify/statsd-instrument/commit/fe5a593"
  end

  describe "dogstatsd-ruby", constant: "Datadog::Statsd" do
    fine since: "5.3.0",
         note: "The thread that sends is started again in a child.",
         source: "https://github.com/DataDog/dogstatsd-ruby/blob/master/CHANGELOG.md (5.3.0)"
    yours since: "5.0.0", before: "5.3.0",
          note: "A child lacks the thread that sends.",
          advice: "update it to 5.3.0, or make the client in after_worker_fork",
          source: "https://github.com/DataDog/dogstatsd-ruby/blob/master/CHANGELOG.md (5.1.0, known issues)"
    flush { |_seconds| ObjectSpace.each_object(Datadog::Statsd) { |client| client.flush(sync: true) } }
  end
end
