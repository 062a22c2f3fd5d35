# frozen_string_literal: true

require "pando/admin/exposition"
require "pando/admin/metrics_source"

module Pando
  module Admin
    # The table of all metrics: name, type, unit, labels, help and where the values come from. The text of /metrics and
    # docs/metrics.md are made of it. Names and units follow Prometheus' conventions: base units, and `_total` for what
    # only grows. A counter goes on over reforks, reloads and upgrades, and begins anew with a new server.
    #
    # Labels have few values: pools, roles, states, and causes that the table names. None comes from a client.
    module Metrics
      # One row.
      Known = Struct.new(:name, :type, :unit, :labels, :help, :value) do
        # @param source [MetricsSource]
        # @return [Family]
        def family(source) = Family.new(name, type, unit, help, value.call(source))
      end

      @known = []

      class << self
        # @return [Array<Known>] in the order of the docs
        attr_reader :known

        # @param snapshot [Snapshot] @param survey [#[]] the memory of each process
        # @return [Array<Family>]
        def families(snapshot, survey)
          source = MetricsSource.new(snapshot, survey)
          known.map { |one| one.family(source) }
        end

        # @return [String] the table of docs/metrics.md
        def markdown
          rows = known.map do |one|
            "| `#{one.name}` | #{one.type} | #{one.labels.map { |label| "`#{label}`" }.join(", ")} | #{one.help} |"
          end
          ["| name | type | labels | meaning |", "|---|---|---|---|", *rows].join("\n") << "\n"
        end

        private

        # @yieldparam source [MetricsSource]
        # @yieldreturn [Hash{Hash{Symbol => Object} => Numeric, Histogram}] values by labels; empty: there are none
        def define(name, type, labels, help, unit: nil, &value)
          unit ||= name.delete_suffix("_total")[/_(seconds|bytes)\z/, 1]
          @known << Known.new("pando_#{name}", type, unit, labels, help, value).freeze
        end

        def gauge(name, labels, help, &value) = define(name, :gauge, labels, help, &value)
        def counter(name, labels, help, &value) = define(name, :counter, labels, help, &value)
        def histogram(name, labels, help, &value) = define(name, :histogram, labels, help, &value)
      end

      # The server.

      gauge("build_info", %i[version ruby], "Always 1: the versions of Pando and Ruby.") do |s|
        { { version: s.server["version"], ruby: RUBY_VERSION } => 1 }
      end
      gauge("start_time_seconds", [], "When the server started, as a UNIX time.") { |s| { {} => s.start_time } }
      gauge("server_state", %i[state], "1 for the state of the server, 0 for the others.") do |s|
        %w[booting serving draining stopping].to_h { |state| [{ state: state }, s.server["state"] == state ? 1 : 0] }
      end
      counter("events_total", %i[event pool], "How often each event has happened. See docs/events.md.") do |s|
        s.totals { |event, pool, _| { event: event, pool: pool }.compact }
      end
      counter("log_lines_lost_total", [], "Lines missing from the log, because it could not be written in time.") do |s|
        { {} => s.count("lines_lost") }
      end

      # Clients.

      gauge("connections", %i[state],
            "Connections of clients that the reactor holds: idle between two requests, or active.") do |s|
        s.traffic do |counts|
          { { state: "idle" } => counts["idle"],
            { state: "active" } => [counts["connections"] - counts["idle"], 0].max }
        end
      end
      gauge("live_connections", %i[pool kind],
            "WebSockets and other connections that the app has taken over (connection), and responses that are " \
            "being streamed (stream).") do |s|
        s.labelled(:kind, "connection" => s.work("connections"), "stream" => s.work("streams"))
      end
      counter("connections_accepted_total", [], "Connections that the reactor has accepted.") do |s|
        s.traffic("accepted")
      end
      counter("connections_hijacked_total", [], "Connections that were handed over to the app.") do |s|
        s.traffic("hijacked")
      end
      gauge("listener_backlog_connections", %i[listen],
            "Connections that wait in the kernel to be accepted, by address. Known for TCP only.") do |s|
        s.all("listener").select { |one| one["waiting"] }.to_h { |one| [{ listen: one["listen"] }, one["waiting"]] }
      end
      gauge("buffer_bytes", %i[kind],
            "Memory of the reactor for request heads, request bodies and responses.") do |s|
        s.traffic do |counts|
          { "heads" => "head_bytes", "bodies" => "body_bytes", "responses" => "response_bytes" }
            .to_h { |kind, name| [{ kind: kind }, counts[name]] }
        end
      end
      gauge("spool_bytes", %i[kind], "Disk space that request bodies and responses take.") do |s|
        s.traffic do |counts|
          %w[bodies responses].to_h { |kind| [{ kind: kind }, counts["spooled_#{kind}"]] }
        end
      end
      counter("spool_failures_total", [], "Writes to the spool that have failed.") { |s| s.traffic("spool_failed") }

      # Requests.

      counter("requests_total", %i[pool method status],
              "Requests that are over, by method and class of status, answered by a worker or by the reactor. " \
              "A client that left before its response began counts as 4xx (499), a connection that the app has " \
              "taken over as 1xx (101).", &:answers)
      histogram("request_duration_seconds", %i[pool],
                "Time from the last byte of a request to the end of its worker's response, with the time in the " \
                "queue. A slow client does not count.") { |s| s.times("duration") }
      histogram("request_queue_seconds", %i[pool], "Time that requests waited for a worker.") { |s| s.times("queue") }
      counter("received_bytes_total", %i[pool], "Bytes of requests, with their heads.") do |s|
        s.bytes("received")
      end
      counter("sent_bytes_total", %i[pool], "Bytes of responses that clients took, with their heads.") do |s|
        s.bytes("sent")
      end
      counter("access_log_lines_total", [], "Lines of the access log, written or about to be.") do |s|
        s.traffic("log_lines")
      end
      counter("access_log_lines_dropped_total", [], "Lines of the access log dropped, as its buffer was full.") do |s|
        s.traffic("log_dropped")
      end
      gauge("requests_in_flight", [], "Requests that wait for a worker or are being served.") do |s|
        s.traffic("in_flight")
      end
      counter("requests_received_total", [], "Complete requests that the reactor has received for workers.") do |s|
        s.traffic("requests")
      end
      counter("responses_total", %i[pool], "Complete responses of workers.") { |s| s.queue("responses") }
      gauge("queue_requests", %i[pool], "Requests that no worker has taken yet.") { |s| s.queue("queued") }
      counter("queue_shed_total", %i[pool reason],
              "Requests answered with 503, by the limit of the pool's queue.") do |s|
        s.labelled(:reason, "max_queue" => s.queue("shed_queue"), "queue_timeout" => s.queue("shed_queue_time"))
      end
      counter("requests_shed_total", %i[reason],
              "Requests answered with 503, and connections closed, because a limit was reached.") do |s|
        s.traffic_by(:reason, MetricsSource::SHED)
      end
      counter("requests_refused_total", %i[reason], "Requests refused as malformed, too large or too slow.") do |s|
        s.traffic_by(:reason, MetricsSource::REFUSED)
      end
      counter("requests_lost_total", %i[reason],
              "Clients that did not get their response: its worker died (bad_gateway), was killed for its deadline " \
              "(gateway_timeout), died after the response had begun (reset), or the client read too slowly.") do |s|
        s.traffic_by(:reason, MetricsSource::LOST)
      end
      counter("requests_retried_total", [], "Safe requests that another worker has served, because theirs died.") do |s|
        s.traffic("retried")
      end
      counter("streams_cut_total", [],
              "Streamed responses that were reset because their worker had to leave: after drain, or at a stop.") do |s|
        s.traffic("streams_cut")
      end
      counter("requests_timed_out_total", %i[pool kind],
              "Requests that exceeded their soft timeout, after which the worker leaves, or their hard one, at which " \
              "it is killed.") do |s|
        s.labelled(:kind, "soft" => s.totals_by_pool("worker.leaving", cause: "timeout"),
                          "hard" => s.totals_by_pool("request.killed"))
      end
      counter("health_checks_total", %i[result], "Health checks that the reactor has answered.") do |s|
        s.traffic_by(:result, "well" => "health_well", "unwell" => "health_unwell")
      end
    end
  end
end

require "pando/admin/metrics_of_processes"
