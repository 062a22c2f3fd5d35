# frozen_string_literal: true

require "pando/fork_safety/libraries/honeybadger_collectors"
require "pando/fork_safety/libraries/launch_darkly_clients"

module Pando
  module ForkSafety
    module Libraries
      # Net::HTTP connections that a child has inherited.
      module NetHTTP
        # Drops the connection without telling the server. Otherwise TLS would end the session, which the parent still
        # uses. The next request opens another connection.
        #
        # @param http [Net::HTTP, nil]
        def self.forget(http)
          return unless http&.started?

          socket = http.instance_variable_get(:@socket)
          socket.io.to_io.close if socket
          http.instance_variable_set(:@socket, nil)
          http.instance_variable_set(:@started, false)
          nil
        end
      end
    end
  end
end

# Error trackers, tracers, metrics, feature flags, logs and events.
Pando::ForkSafety::Libraries::Known.define do
  describe "sentry-ruby", constant: "Sentry::Client", tested: true do
    fine since: "5.2.0",
         note: "Its threads start again in a child as soon as there is something to send.",
         source: "https://github.com/getsentry/sentry-ruby/blob/5.2.0/sentry-ruby/lib/sentry/session_flusher.rb"
    revives_threads at: %r{/lib/sentry/\w+\.rb:\d+\z}
  end

  describe "datadog", constant: "Datadog::VERSION", tested: true do
    fine since: "2.3.0",
         note: "Its threads start again in a child.",
         source: "https://github.com/DataDog/dd-trace-rb/commit/b55c33fc04"
    fine before: "2.3.0",
         note: "In a child, the tracer's threads start again, but the profiler does not.",
         source: "https://github.com/DataDog/dd-trace-rb/blob/v2.0.0/lib/datadog/core/workers/async.rb"
    revives_threads at: %r{/lib/datadog/(?:core|tracing|profiling|di|symbol_database|data_streams)/\S+\.rb:\d+\z}
    # Those of its native transport, the default on Ruby 4.0.
    ends_native_threads(/\Atokio-runtime-w/, since: "2.45.0")
  end

  describe "ddtrace", constant: "DDTrace::VERSION", tested: true do
    fine since: "1.0.0",
         note: "In a child, the tracer's threads start again, but the profiler does not.",
         source: "https://github.com/DataDog/dd-trace-rb/blob/v1.0.0/lib/datadog/core/workers/async.rb"
    revives_threads at: %r{/lib/(?:datadog|ddtrace)/(?:core|tracing|workers)\S*\.rb:\d+\z}
  end

  describe "newrelic_rpm", constant: "NewRelic::Agent::Agent", tested: true do
    fine since: "3.8.0",
         note: "Its threads start again with the first request in a child.",
         source: "https://github.com/newrelic/newrelic-ruby-agent/blob/dev/CHANGELOG.md (3.8.0)"
    revives_threads at: %r{/lib/new_relic/\S+\.rb:\d+\z}
  end

  describe "opentelemetry-sdk", constant: "OpenTelemetry::SDK", tested: true do
    fine since: "0.12.1",
         note: "The thread that sends spans starts again in a child with the first span that ends.",
         source: "https://github.com/open-telemetry/opentelemetry-ruby/blob/main/sdk/CHANGELOG.md (0.12.1)"
    # Until it is configured, the provider is a proxy that cannot flush.
    flush do |seconds|
      provider = OpenTelemetry.tracer_provider
      provider.force_flush(timeout: seconds) if provider.respond_to?(:force_flush)
    end
    revives_threads at: %r{/lib/opentelemetry/sdk/trace/export/\w+\.rb:\d+\z}
  end

  describe "opentelemetry-metrics-sdk", constant: "OpenTelemetry::SDK::Metrics", tested: true do
    fine since: "0.7.1",
         note: "The thread that sends metrics starts again in a child.",
         source: "https://github.com/open-telemetry/opentelemetry-ruby/blob/main/metrics_sdk/CHANGELOG.md (0.7.1)"
    refused before: "0.7.1", used: -> { false },
            note: "A child lacks the thread that sends metrics.",
            advice: "Update opentelemetry-metrics-sdk to 0.7.1.",
            source: "https://github.com/open-telemetry/opentelemetry-ruby/blob/main/metrics_sdk/CHANGELOG.md (0.7.1)"
    revives_threads at: %r{/lib/opentelemetry/sdk/metrics/\S+\.rb:\d+\z}, since: "0.7.1"
  end

  describe "honeybadger", constant: "Honeybadger::Agent", tested: true do
    handled since: "4.0.0",
            note: "Its threads start again in a child as soon as there is something to send. In each child, Pando " \
                  "starts the thread again that collects the metrics of Insights.",
            source: "https://github.com/honeybadger-io/honeybadger-ruby/blob/v4.0.0/lib/honeybadger/worker.rb"
    collectors = Pando::ForkSafety::Libraries::HoneybadgerCollectors
    watch { collectors.watch }
    in_child { collectors.start }
    revives_threads at: %r{/lib/honeybadger/\w+\.rb:\d+\z}
  end

  describe "bugsnag", constant: "Bugsnag::Configuration", tested: true do
    fine since: "3.0.0",
         note: "Its thread starts again in a child as soon as there is something to send.",
         source: "https://github.com/bugsnag/bugsnag-ruby/commit/61028f11"
    revives_threads at: %r{/lib/bugsnag/\S+\.rb:\d+\z}
  end

  describe "airbrake-ruby", constant: "Airbrake::AsyncSender", tested: true do
    fine since: "1.0.3",
         note: "Its threads start again in a child as soon as there is something to send. A child keeps the remote " \
               "settings of its parent and does not poll for new ones.",
         source: "https://github.com/airbrake/airbrake-ruby/commit/ff88d3f"
    revives_threads at: %r{/lib/airbrake-ruby/\w+\.rb:\d+\z}
  end

  describe "rollbar", constant: "Rollbar::Notifier", tested: true do
    fine note: "It sends at once, or through a thread that starts again as soon as there is something to send.",
         source: "https://github.com/rollbar/rollbar-gem/blob/master/lib/rollbar/delay/thread.rb"
    revives_threads at: %r{/lib/rollbar/delay/thread\.rb:\d+\z}
  end

  describe "appsignal", constant: "Appsignal::Extension" do
    handled since: "0.5.3",
            note: "In each child, Pando starts its extension, as AppSignal's own integrations do, and the thread " \
                  "that runs its probes.",
            source: "https://github.com/appsignal/appsignal-ruby/blob/main/lib/appsignal/integrations/unicorn.rb"
    in_child do
      Appsignal.forked
      Appsignal::Probes.start if defined?(Appsignal::Probes.started?) && Appsignal::Probes.started?
    end
    revives_threads at: %r{/lib/appsignal/probes\.rb:\d+\z}
  end

  describe "scout_apm", constant: "ScoutApm::Agent", tested: true do
    handled note: "In each child, Pando starts its threads again.",
            source: "https://github.com/scoutapp/scout_apm_ruby/blob/master/lib/scout_apm/agent.rb"
    in_child do
      agent = ScoutApm::Agent.instance
      agent.start if agent.context.started?
    end
    revives_threads at: %r{/lib/scout_apm/(?:agent|background_recorder|app_server_load)\.rb:\d+\z}
  end

  describe "elastic-apm", constant: "ElasticAPM::Agent", tested: true do
    fine since: "3.8.0",
         note: "Its threads start again with the first transaction or error in a child.",
         source: "https://github.com/elastic/apm-agent-ruby/blob/main/CHANGELOG.asciidoc (3.8.0)"
    revives_threads at: %r{/lib/elastic_apm/\S+\.rb:\d+\z}
  end

  describe "rorvswild", constant: "RorVsWild::Agent", tested: true do
    fine note: "Its thread starts again with the tenth request in a child.",
         source: "https://github.com/BaseSecrete/rorvswild/blob/master/lib/rorvswild/queue.rb"
    revives_threads at: %r{/lib/rorvswild/\w+\.rb:\d+\z}
  end

  describe "skylight", constant: "Skylight::Instrumenter" do
    unknown note: "Its agent is a native library whose source is not public. Skylight supports servers that fork " \
                  "workers from a process that has served no request.",
            source: "https://www.skylight.io/support/advanced-setup"
  end

  describe "judoscale-ruby", constant: "Judoscale::Reporter", tested: true do
    fine note: "Its thread starts again with the first request in a child.",
         source: "https://github.com/judoscale/judoscale-ruby/blob/main/judoscale-ruby/lib/judoscale/reporter.rb"
    revives_threads at: %r{/lib/judoscale/reporter\.rb:\d+\z}
  end

  describe "barnes", constant: "Barnes::Periodic", tested: true do
    handled since: "0.0.9",
            note: "In each child, Pando starts its thread again, with the same interval and panels.",
            source: "https://github.com/heroku/barnes/blob/main/lib/barnes.rb"
    in_child do
      periodic = Barnes.instance_variable_get(:@periodic)
      interval, panels = %i[@interval @panels].map { |name| periodic&.instance_variable_get(name) }
      Barnes.start(interval: interval, panels: panels) if periodic
    end
    revives_threads at: %r{/lib/barnes/periodic\.rb:\d+\z}
  end

  describe "prometheus-client", constant: "Prometheus::Client", tested: true do
    fine since: "1.0.0",
         note: "Each process counts its own metrics in memory; DirectFileStore opens a file for each process.",
         source: "https://github.com/prometheus/client_ruby/blob/v1.0.0/lib/prometheus/client/data_stores/README.md"
  end

  describe "prometheus_exporter", constant: "PrometheusExporter::Client", tested: true do
    periodic = lambda do
      defined?(PrometheusExporter::Instrumentation::PeriodicStats) &&
        ObjectSpace.each_object(PrometheusExporter::Instrumentation::PeriodicStats.singleton_class).any?(&:started?)
    end
    refused given: "an instrumentation is started while the app is loaded", condition: periodic, used: -> { false },
            note: "A child lacks the threads that collect, such as PrometheusExporter::Instrumentation::Process.",
            advice: "Start each instrumentation in a hook: after_worker_fork { " \
                    'PrometheusExporter::Instrumentation::Process.start(type: "web") }.',
            source: "https://github.com/discourse/prometheus_exporter#process-stats-instrumentation"
    fine note: "The thread that sends starts again in a child with the next metric.",
         source: "https://github.com/discourse/prometheus_exporter/blob/main/lib/prometheus_exporter/client.rb"
    revives_threads at: %r{/lib/prometheus_exporter/client\.rb:\d+\z}
  end

  describe "yabeda", constant: "Yabeda", tested: true do
    fine note: "It has no threads: its adapters send, or count in memory.",
         source: "https://github.com/yabeda-rb/yabeda/blob/master/lib/yabeda.rb"
  end

  describe "yabeda-prometheus", constant: "Yabeda::Prometheus::Exporter", tested: true do
    fine note: "Mount Yabeda::Prometheus::Exporter in the app. The server that start_metrics_server! runs in a " \
               "thread does not exist in a child.",
         source: "https://github.com/yabeda-rb/yabeda-prometheus/blob/master/lib/yabeda/prometheus/exporter.rb"
  end

  describe "statsd-instrument", constant: "StatsD::Instrument", tested: true do
    fine since: "3.3.0",
         note: "The thread that sends starts again in a child with the next metric.",
         source: "https://github.com/Shopify/statsd-instrument/commit/fe5a593"
    revives_threads at: %r{/lib/statsd/instrument/\w+\.rb:\d+\z}
  end

  describe "dogstatsd-ruby", constant: "Datadog::Statsd", tested: true do
    fine since: "5.3.0",
         note: "The thread that sends starts again in a child with the next metric.",
         source: "https://github.com/DataDog/dogstatsd-ruby/blob/master/CHANGELOG.md (5.3.0)"
    refused since: "5.0.0", before: "5.3.0", used: -> { false },
            note: "A child lacks the thread that sends.",
            advice: "Update dogstatsd-ruby to 5.3.0, or make the client in after_worker_fork.",
            source: "https://github.com/DataDog/dogstatsd-ruby/blob/master/CHANGELOG.md (5.1.0, known issues)"
    flush { |_seconds| ObjectSpace.each_object(Datadog::Statsd) { |client| client.flush(sync: true) } }
    revives_threads at: %r{/lib/datadog/statsd/\w+\.rb:\d+\z}, since: "5.3.0"
  end

  describe "launchdarkly-server-sdk", constant: "LaunchDarkly::LDClient", tested: true do
    handled since: "8.10.0",
            note: "In each child, Pando calls the `postfork` of clients that are not closed, and waits up to 5 s for " \
                  "their flags.",
            source: "https://github.com/launchdarkly/ruby-server-sdk/pull/319"
    refused before: "8.10.0", used: -> { false },
            note: "A child lacks its threads, so it sees no change of a flag.",
            advice: "Update launchdarkly-server-sdk to 8.10.0, or make the client in after_worker_fork.",
            source: "https://github.com/launchdarkly/ruby-server-sdk/pull/319"
    clients = Pando::ForkSafety::Libraries::LaunchDarklyClients
    watch { clients.watch }
    in_child { clients.start }
    revives_threads at: %r{/lib/(?:ldclient-rb|ld-eventsource)/\S+\.rb:\d+\z}, since: "8.10.0"
  end

  describe "flipper", constant: "Flipper::Poller", tested: true do
    fine since: "0.26.1",
         note: "The threads that fetch flags and send telemetry start again in a child with the next use of a flag.",
         source: "https://github.com/flippercloud/flipper/blob/v1.3.0/lib/flipper/poller.rb"
    revives_threads at: %r{/lib/flipper/(?:poller|cloud/telemetry\S*)\.rb:\d+\z}
  end

  describe "semantic_logger", constant: "SemanticLogger::Logger", tested: true do
    fine since: "5.0.0",
         note: "Its thread and its appenders start again in a child, unless `SemanticLogger.reopen_on_fork` is false.",
         source: "https://github.com/reidmorrison/semantic_logger/blob/v5.0.0/lib/semantic_logger.rb"
    handled before: "5.0.0",
            note: "In each child, Pando calls SemanticLogger.reopen, which starts its thread and its appenders " \
                  "again. The parent writes what was queued. The same holds for rails_semantic_logger.",
            source: "https://logger.rocketjob.io/forking.html"
    in_child { SemanticLogger.reopen }
    revives_threads at: %r{/lib/semantic_logger/(?:appender/(?:async\w*|cloudwatch_logs)|queue_processor)\.rb:\d+\z}
  end

  describe "logtail", constant: "Logtail::LogDevices::HTTP", tested: true do
    fine note: "Its threads start again in a child with the next line.",
         source: "https://github.com/logtail/logtail-ruby/blob/main/lib/logtail/log_devices/http.rb"
    revives_threads at: %r{/lib/logtail/log_devices/http\.rb:\d+\z}
  end

  forget = lambda do |transport|
    ObjectSpace.each_object(transport) do |one|
      Pando::ForkSafety::Libraries::NetHTTP.forget(one.instance_variable_get(:@http))
    end
  end

  # The parent sends what was queued and what it was sending. With a copy of that, the child's flush would not end.
  drop = lambda do |client|
    client.instance_variable_get(:@queue)&.clear
    client.instance_variable_get(:@worker)&.instance_variable_get(:@batch)&.clear
  end

  describe "analytics-ruby", constant: "Segment::Analytics::Client", tested: true do
    handled note: "A child drops its parent's connection, and its thread starts again with the next event. The " \
                  "parent sends what was queued.",
            source: "https://github.com/segmentio/analytics-ruby/blob/master/lib/segment/analytics/transport.rb"
    in_child do
      forget.call(Segment::Analytics::Transport)
      ObjectSpace.each_object(Segment::Analytics::Client, &drop)
    end
    flush { |_seconds| ObjectSpace.each_object(Segment::Analytics::Client).to_a.each(&:flush) }
    revives_threads at: %r{/lib/segment/analytics/client\.rb:\d+\z}
  end

  describe "posthog-ruby", constant: "PostHog::Client", tested: true do
    handled note: "A child drops its parent's connection, and its thread starts again with the next event. The " \
                  "parent sends what was queued. In each child, Pando starts the task again that asks for new " \
                  "feature flags.",
            source: "https://github.com/PostHog/posthog-ruby/blob/main/lib/posthog/client.rb"
    in_child do
      forget.call(PostHog::Transport)
      ObjectSpace.each_object(PostHog::Client) do |client|
        drop.call(client)
        task = client.instance_variable_get(:@feature_flags_poller)&.instance_variable_get(:@task)
        next unless task&.running?

        # The copy of a timer task says that it runs, so `execute` alone does nothing.
        task.instance_variable_get(:@running).make_false
        task.execute
      end
    end
    flush { |_seconds| ObjectSpace.each_object(PostHog::Client).to_a.each(&:flush) }
    revives_threads at: %r{/lib/posthog/(?:client|feature_flags|send_worker|transport)\.rb:\d+\z}
  end
end
