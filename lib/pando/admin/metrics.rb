# frozen_string_literal: true

require "pando/admin/metrics_source"
require "pando/histogram"

module Pando
  module Admin
    # One metric with its values. `samples` has values by their labels: numbers, or histograms (Pando::Histogram).
    #
    #   Family.new("pando_connections", :gauge, nil, "Client connections.", { { state: "idle" } => 3 })
    Family = Struct.new(:name, :type, :unit, :help, :samples)

    # Writes metrics as text: Prometheus' format 0.0.4, or OpenMetrics 1.0. The two differ in the names of counters'
    # heads, in units and in the end.
    class Exposition
      # Upper bounds of a histogram's buckets, in seconds: a millisecond to a minute.
      BOUNDS = (0..16).map { |doublings| (2**doublings) / 1000.0 }.freeze
      SPECIAL = /[\\\n"]/
      ESCAPED = { "\\" => "\\\\", "\n" => "\\n", "\"" => "\\\"" }.freeze

      def initialize(openmetrics: false)
        @openmetrics = openmetrics
      end

      def write(families)
        text = +""
        families.each { |family| family(text, family) unless family.samples.empty? }
        text << "# EOF\n" if @openmetrics
        text
      end

      private

      def family(text, family)
        name = head(family)
        text << "# HELP #{name} #{help(family.help)}\n# TYPE #{name} #{family.type}\n"
        text << "# UNIT #{name} #{family.unit}\n" if @openmetrics && unit?(family, name)
        family.samples.each { |labels, value| sample(text, family.name, labels, value) }
      end

      def head(family)
        @openmetrics && family.type == :counter ? family.name.delete_suffix("_total") : family.name
      end

      # OpenMetrics wants the unit at the end of the name.
      def unit?(family, name) = family.unit && name.end_with?("_#{family.unit}")

      def sample(text, name, labels, value)
        labels = written(labels)
        value.is_a?(Histogram) ? histogram(text, name, labels, value) : line(text, name, labels, number(value))
      end

      def histogram(text, name, labels, histogram)
        limits = labels.empty? ? "" : "#{labels},"
        BOUNDS.each { |bound| line(text, "#{name}_bucket", "#{limits}le=\"#{bound}\"", histogram.below(bound)) }
        line(text, "#{name}_bucket", "#{limits}le=\"+Inf\"", histogram.size)
        line(text, "#{name}_sum", labels, number(histogram.sum))
        line(text, "#{name}_count", labels, histogram.size)
      end

      def line(text, name, labels, value)
        text << name
        text << "{" << labels << "}" unless labels.empty?
        text << " " << value.to_s << "\n"
      end

      def written(labels) = labels.map { |key, value| "#{key}=\"#{escape(value.to_s)}\"" }.join(",")
      def escape(text) = text.match?(SPECIAL) ? text.gsub(SPECIAL, ESCAPED) : text

      # Quotes stay as they are in Prometheus' help.
      def help(text) = text.gsub(@openmetrics ? /[\\\n"]/ : /[\\\n]/, ESCAPED)

      def number(value)
        return value.to_s if value.is_a?(Integer)
        return { 1 => "+Inf", -1 => "-Inf" }.fetch(value.infinite?) if value.infinite?

        value.nan? ? "NaN" : value.to_s
      end
    end

    # The table of all metrics: name, type, unit, labels, help and where the values come from. The text of /metrics and
    # docs/metrics.md are made of it. Names and units follow Prometheus' conventions: base units, and `_total` for what
    # only grows. A counter goes on over reforks, reloads and upgrades, and begins anew with a new server.
    #
    # Labels have few values: pools, roles, states, and causes that the table names. None comes from a client.
    module Metrics
      # One row.
      Known = Struct.new(:name, :type, :unit, :labels, :help, :value) do
        def family(source) = Family.new(name, type, unit, help, value.call(source))
      end

      @known = []

      class << self
        attr_reader :known

        def families(snapshot, survey)
          source = MetricsSource.new(snapshot, survey)
          known.map { |one| one.family(source) }
        end

        private

        # @param from [Hash{Symbol => Object}] a method of the source and its argument, if that gives the values
        # @yieldreturn [Hash{Hash{Symbol => Object} => Numeric, Histogram}] values by labels; empty: there are none
        def define(type, name, labels, help, **from, &value)
          unit = name.delete_suffix("_total")[/_(seconds|bytes)\z/, 1]
          value ||= ->(source) { source.public_send(*from.first) }
          @known << Known.new("pando_#{name}", type, unit, labels, help, value).freeze
        end

        def gauge(...) = define(:gauge, ...)
        def counter(...) = define(:counter, ...)
        def histogram(...) = define(:histogram, ...)
      end

      # The server.

      gauge("build_info", %i[version ruby], "Always 1: the versions of Pando and Ruby.") do |s|
        { { version: s.server["version"], ruby: RUBY_VERSION } => 1 }
      end
      gauge("start_time_seconds", [], "When the server started, as a UNIX time.") { |s| { {} => s.start_time } }
      gauge("server_state", %i[state], "1 for the state of the server, 0 for the others.") do |s|
        %w[booting serving draining stopping].to_h { |state| [{ state: state }, s.server["state"] == state ? 1 : 0] }
      end
      counter("events_total", %i[event pool],
              "How often each event has happened, or how many requests it has reported. See docs/events.md.") do |s|
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
      counter("connections_accepted_total", [], "Connections that the reactor has accepted.", traffic: "accepted")
      counter("connections_hijacked_total", [], "Connections that were handed over to the app.", traffic: "hijacked")
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
      counter("spool_failures_total", [], "Writes to the spool that have failed.", traffic: "spool_failed")

      # Requests.

      counter("requests_total", %i[pool method status],
              "Requests that are over, by method and class of status, answered by a worker or by the reactor. " \
              "A client that left before its response began counts as 4xx (499), a connection that the app has " \
              "taken over as 1xx (101).", &:answers)
      histogram("request_duration_seconds", %i[pool],
                "Time from the last byte of a request to the end of its worker's response, with the time in the " \
                "queue. A slow client does not count. A request that left the queue without a worker counts with " \
                "its time there.", times: "duration")
      histogram("request_queue_seconds", %i[pool],
                "Time that requests waited for a worker, also in vain: until queue_timeout, or until their client " \
                "left.", times: "queue")
      counter("received_bytes_total", %i[pool], "Bytes of requests, with their heads.", bytes: "received")
      counter("sent_bytes_total", %i[pool], "Bytes of responses that clients took, with their heads.", bytes: "sent")
      counter("access_log_lines_total", [], "Lines of the access log, written or about to be.", traffic: "log_lines")
      counter("access_log_lines_dropped_total", [],
              "Lines of the access log dropped, as its buffer was full.", traffic: "log_dropped")
      gauge("requests_in_flight", [], "Requests that wait for a worker or are being served.", traffic: "in_flight")
      counter("requests_received_total", [],
              "Complete requests that the reactor has received for workers.", traffic: "requests")
      counter("responses_total", %i[pool], "Complete responses of workers.", queue: "responses")
      gauge("queue_requests", %i[pool], "Requests that no worker has taken yet.", queue: "queued")
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
      counter("requests_retried_total", [],
              "Safe requests that another worker has served, because theirs died.", traffic: "retried")
      counter("streams_cut_total", [],
              "Streamed responses that were reset because their worker had to leave: after drain, or at a stop.",
              traffic: "streams_cut")
      counter("requests_timed_out_total", %i[pool kind],
              "Requests that exceeded their soft timeout, after which the worker leaves, or their hard one, at which " \
              "it is killed.") do |s|
        s.labelled(:kind, "soft" => s.work("timeouts"),
                          "hard" => s.totals_by_pool("request.killed", cause: "timeout"))
      end
      counter("health_checks_total", %i[result], "Health checks that the reactor has answered.") do |s|
        s.traffic_by(:result, "well" => "health_well", "unwell" => "health_unwell")
      end

      # Processes.

      gauge("workers_wanted", %i[pool], "Workers or nodes that the pool is to have.", of_pools: "workers")
      gauge("workers_ready", %i[pool], "Workers or nodes that are ready.", of_pools: "ready")
      gauge("processes", %i[role pool state],
            "Processes by role and state. A worker is idle or busy, or on its way in or out. A state that none has " \
            "is 0.", &:processes)
      gauge("worker_threads", %i[pool], "Requests that one worker serves at a time.", work: "threads")
      gauge("workers_fork_unsafe", %i[pool], "Ready workers that cannot become a mold.", work: "unsafe")
      counter("process_exits_total", %i[role pool outcome],
              "Processes that have ended: as told (exited), before they were ready (failed), killed by the monitor " \
              "(killed), or unexpectedly (lost).", &:exits)
      counter("workers_killed_total", %i[pool cause],
              "Workers that the monitor has killed: for #{MetricsSource::KILLS.join(", ")} or another cause.") do |s|
        s.totals_by_cause("worker.killed", MetricsSource::KILLS)
      end
      counter("workers_oom_killed_total", %i[pool], "Workers that the kernel has killed for lack of memory.") do |s|
        s.totals_by_pool("worker.lost", cause: "oom")
      end
      counter("workers_outgrown_total", %i[pool], "Workers replaced because they took too much memory.") do |s|
        s.totals_by_pool("worker.leaving", cause: "memory")
      end
      counter("restarts_throttled_total", %i[pool],
              "Restarts put off because a process died again and again.", totals_by_pool: "restart.throttled")

      # Generations.

      gauge("generation_number", %i[pool], "The generation that serves.", current: "number")
      gauge("generation_age_seconds", %i[pool], "Time since its mold was started.", current: "age")
      counter("reforks_total", %i[pool outcome], "Reforks: started, finished, refused or withheld.") do |s|
        s.labelled(:outcome, MetricsSource::REFORKS.to_h { |one| [one, s.totals_by_pool("refork.#{one}")] })
      end
      counter("generations_discarded_total", %i[pool cause],
              "New generations that failed, by what failed: canary, watch, mold, worker, check, fork or spawn.") do |s|
        s.totals_by_cause("generation.discarded", MetricsSource::FAILURES)
      end
      gauge("refork_suspended", %i[pool],
            "1 if too many reforks in a row have failed, so that Pando does not try again.") do |s|
        s.of_pools("suspended", 0) { |value| value ? 1 : 0 }
      end
      counter("reloads_total", %i[outcome], "Reloads: started, finished or failed.") do |s|
        %w[started finished failed].to_h { |one| [{ outcome: one }, s.total("reload.#{one}")] }
      end
      counter("upgrades_total", %i[outcome], "Upgrades of the monitor: finished or failed.") do |s|
        { { outcome: "finished" } => s.total("monitor.upgraded"), { outcome: "failed" } => s.total("upgrade.failed") }
      end

      # Memory and work.

      { pss: "Memory of processes, with shared pages divided among the processes that share them (PSS)",
        private: "Memory that only one process has",
        shared: "Memory that processes share, each page counted once: PSS less private memory" }.each do |kind, text|
        gauge("memory_#{kind}_bytes", %i[role pool], "#{text}. Measured in the background.") { |s| s.memory(kind) }
      end
      gauge("jit_code_bytes", %i[pool],
            "Machine code that Ruby's JIT has compiled, in the worker with the most.", work: "code")
      counter("worker_cpu_seconds_total", %i[pool], "CPU time of workers, as of their last samples.", work: "cpu")
      counter("worker_page_faults_total", %i[pool],
              "Pages that workers were given without reading from disk, mostly copied on write.", work: "faults")
      counter("worker_gc_total", %i[pool kind], "Garbage collections in workers: minor or major.") do |s|
        s.labelled(:kind, "minor" => s.work("minor_gcs"), "major" => s.work("major_gcs"))
      end
      counter("worker_gc_seconds_total", %i[pool], "Time of these collections.", work: "gc_time")
      counter("worker_lock_wait_seconds_total", %i[pool],
              "Time that finished requests have waited for the interpreter lock, where workers have threads.",
              work: "lock_wait")

      # Jobs.

      counter("jobs_total", %i[pool], "Jobs that nodes have done.") { |s| s.work("requests", jobs: true) }
      counter("jobs_failed_total", %i[pool], "Jobs that have failed.") { |s| s.work("failures", jobs: true) }
      gauge("jobs_running", %i[pool], "Jobs that run now.") { |s| s.work("running", jobs: true) }
      gauge("jobs_waiting", %i[pool], "Jobs that wait, if the broker reports them.") { |s| s.work("lag", jobs: true) }
      gauge("jobs_latency_seconds", %i[pool],
            "Time that the oldest waiting job has waited, with Sidekiq, Solid Queue and GoodJob.") do |s|
        s.work("latency", jobs: true).compact
      end
    end
  end
end
