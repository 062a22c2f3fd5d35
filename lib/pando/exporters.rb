# frozen_string_literal: true

require "json"
require "pando/admin/memory_survey"
require "pando/admin/metrics"
require "pando/admin/monitor"
require "pando/histogram"
require "pando/version"

module Pando
  # Sends Pando's metrics (docs/metrics.md) to other systems, from a service, which has the application and its gems:
  #
  #     service(:metrics) { |service| Pando::Exporters::StatsD.new(Datadog::Statsd.new).run(service) }
  #
  # Each exporter needs a gem, which must be in the bundle.
  module Exporters
    # What all exporters have in common: every few seconds they ask the monitor for the figures of which /metrics is
    # made, and send them. A gauge is sent as it is, of a counter or histogram what has been added since the last time,
    # also if that was another process of the service. Owned by the user's service, in its process.
    class Exporter
      EVERY = 10.0

      # @param every [Numeric] seconds from one report to the next
      # @raise [ArgumentError]
      def initialize(every: EVERY)
        raise ArgumentError, "every: takes a positive number of seconds, not #{every.inspect}" unless every.positive?

        @every = every
      end

      # Reports until the service should stop, and once more then.
      # @param service [Cluster::Service]
      # @return [void]
      def run(service)
        monitor = Admin::Monitor.new { |socket| service.introduce(socket) }
        survey = Admin::MemorySurvey.new(monitor).start
        @reported = Reported.new(service.notes)
        prepare
        loop do
          ask(monitor, survey)
          break if service.stopping?

          service.wait(@every)
        end
        finish
      end

      private

      # Called once, before the first report, and after the last one.
      def prepare; end
      def finish; end

      def ask(monitor, survey)
        export(Admin::Metrics.families(monitor.snapshot, survey))
        survey.look_soon # nothing tells it of events
      rescue Admin::Monitor::Unavailable
        nil # the next report has it
      end

      # @param families [Array<Admin::Family>] with all values of one moment
      def export(families)
        @reported.update(families) do |family, labels, added|
          family.type == :histogram ? histogram(family, labels, added) : counter(family, labels, added)
        end
        families.each do |family|
          family.samples.each { |labels, value| gauge(family, labels, value) } if family.type == :gauge
        end
      end

      # @return [String] the name without what the other system writes in its own way
      def name_of(family) = family.name.delete_prefix("pando_").delete_suffix("_total")

      # Systems that take single values get them right to a quarter, and their sum exactly.
      # @param times [Histogram]
      # @yieldparam seconds [Float]
      def each_time(times)
        middles = times.counts.each_index.map { |bucket| middle(bucket) }
        factor = times.sum / middles.zip(times.counts).sum { |time, count| time * count }
        times.counts.each_with_index { |count, bucket| count.times { yield middles[bucket] * factor } }
      end

      def middle(bucket)
        below = bucket.zero? ? 0.0 : Histogram.edge(bucket - 1)
        (below + Histogram.edge(bucket)) / 2
      end
    end

    # The counters and histograms as an exporter has reported them last. The process that takes its service's place
    # finds them in the service's notes and goes on from there. Owned by an exporter.
    class Reported
      # @param notes [Cluster::ServiceNotes]
      def initialize(notes)
        @notes = notes
        @values = parse(notes.text)
      end

      # The first report of all only tells from where to count.
      # @param families [Array<Admin::Family>]
      # @yieldparam family [Admin::Family] @yieldparam labels [Hash]
      # @yieldparam added [Numeric, Histogram] what has been added since the last time, if anything has
      def update(families)
        before = @values
        @values = {}
        families.reject { |family| family.type == :gauge }.each do |family|
          family.samples.each do |labels, value|
            key = [family.name, *labels.flatten].join(" ")
            @values[key] = value
            added = since(before[key], value) if before
            yield family, labels, added if added
          end
        end
        @notes.text = JSON.generate(@values.transform_values { |value| plain(value) })
      end

      private

      # A counter that is shown for the first time has begun since the last report.
      # @return [Numeric, Histogram, nil] nil: nothing
      def since(before, value)
        added = before ? value - before : value
        added if (added.is_a?(Histogram) ? added.size : added).positive?
      end

      def plain(value) = value.is_a?(Histogram) ? [value.counts, value.sum] : value

      # @return [Hash{String => Numeric, Histogram}, nil]
      def parse(text)
        return if text.empty?

        JSON.parse(text).transform_values { |value| value.is_a?(Array) ? Histogram.new(*value) : value }
      end
    end

    # Sends the metrics to a StatsD server that knows tags, such as Datadog's agent, by the gem dogstatsd-ruby (which is
    # required as "datadog/statsd"):
    #
    #     service(:metrics) do |service|
    #       Pando::Exporters::StatsD.new(Datadog::Statsd.new("localhost", 8125)).run(service)
    #     end
    #
    # A histogram is sent as `.count` and `.sum` of what was added, and as gauges `.p50`, `.p95` and `.p99` of that.
    class StatsD < Exporter
      SHARES = { "p50" => 0.5, "p95" => 0.95, "p99" => 0.99 }.freeze

      # @param client [Datadog::Statsd] or another one with its methods #gauge and #count
      # @param every [Numeric] seconds from one report to the next
      # @raise [ArgumentError] it is no such client
      def initialize(client, every: EVERY)
        super(every: every)
        unless %i[gauge count].all? { |name| client.respond_to?(name) }
          raise ArgumentError, "the exporter needs a client such as Datadog::Statsd.new (gem \"dogstatsd-ruby\"), " \
                               "not #{client.class}"
        end

        @client = client
      end

      private

      def gauge(family, labels, value) = @client.gauge(dotted(family), value, tags: tags(labels))
      def counter(family, labels, value) = @client.count(dotted(family), value, tags: tags(labels))

      def histogram(family, labels, times)
        name = dotted(family)
        @client.count("#{name}.count", times.size, tags: tags(labels))
        @client.count("#{name}.sum", times.sum, tags: tags(labels))
        SHARES.each { |share, of| @client.gauge("#{name}.#{share}", times.percentile(of), tags: tags(labels)) }
      end

      # The client gathers datagrams, and sends them in the background.
      def finish = (@client.flush(sync: true) if @client.respond_to?(:flush))

      def dotted(family) = "pando.#{name_of(family)}"
      def tags(labels) = labels.map { |name, value| "#{name}:#{value}" }
    end

    # Records the metrics with OpenTelemetry, whose reader sends them (OTLP, for one). It needs the gems
    # opentelemetry-metrics-sdk and opentelemetry-exporter-otlp-metrics, and OpenTelemetry::SDK.configure in the
    # application:
    #
    #     service(:metrics) { |service| Pando::Exporters::OpenTelemetry.new.run(service) }
    class OpenTelemetry < Exporter
      UNITS = { "seconds" => "s", "bytes" => "By" }.freeze

      # @param meter_provider [OpenTelemetry::SDK::Metrics::MeterProvider] the application's
      # @param every [Numeric] seconds from one recording to the next; the reader has its own interval
      #   (OTEL_METRIC_EXPORT_INTERVAL)
      # @raise [ArgumentError] there is no such provider
      def initialize(meter_provider: nil, every: EVERY)
        super(every: every)
        @provider = meter_provider || self.class.global_provider
        @instruments = {}
      end

      # @return [OpenTelemetry::SDK::Metrics::MeterProvider]
      # @raise [ArgumentError]
      # @api private
      def self.global_provider
        provider = ::OpenTelemetry.meter_provider if defined?(::OpenTelemetry::SDK::Metrics)
        return provider if provider.respond_to?(:add_view)

        raise ArgumentError, "OpenTelemetry records no metrics here: add the gems opentelemetry-metrics-sdk and " \
                             "opentelemetry-exporter-otlp-metrics, and call OpenTelemetry::SDK.configure in the app"
      end

      private

      # The SDK's own buckets are made for milliseconds.
      def prepare
        buckets = ::OpenTelemetry::SDK::Metrics::Aggregation::ExplicitBucketHistogram
        Admin::Metrics.known.select { |one| one.type == :histogram }.each do |one|
          @provider.add_view(dotted(one), aggregation: buckets.new(boundaries: Admin::Exposition::BOUNDS))
        end
        @meter = @provider.meter("pando", version: VERSION)
      end

      def finish = @provider.force_flush

      def gauge(family, labels, value) = instrument(family).record(value, attributes: attributes(labels))
      def counter(family, labels, value) = instrument(family).add(value, attributes: attributes(labels))

      def histogram(family, labels, times)
        attributes = attributes(labels)
        each_time(times) { |seconds| instrument(family).record(seconds, attributes: attributes) }
      end

      def instrument(family)
        @instruments[family.name] ||=
          @meter.public_send(:"create_#{family.type}", dotted(family), unit: UNITS[family.unit],
                                                                       description: family.help)
      end

      # Units are not part of a name there, unless another metric has the name without it.
      def dotted(family)
        name = name_of(family)
        short = name.delete_suffix("_#{family.unit}")
        taken = Admin::Metrics.known.any? { |one| one.name != family.name && name_of(one) == short }
        "pando.#{taken ? name : short}"
      end

      def attributes(labels) = labels.to_h { |name, value| [name.to_s, value.to_s] }
    end

    # Puts the metrics into Yabeda, in the group `pando`, whose adapters pass them on. It needs the gem yabeda and one
    # of its adapters:
    #
    #     service(:metrics) { |service| Pando::Exporters::Yabeda.new.run(service) }
    #
    # They are values of the service's process: an adapter that waits to be asked must be asked there.
    class Yabeda < Exporter
      # @param every [Numeric] seconds from one report to the next
      # @raise [ArgumentError] the gem is not loaded
      def initialize(every: EVERY)
        super
        return if defined?(::Yabeda)

        raise ArgumentError, "Yabeda is not loaded: add the gem yabeda and an adapter, such as yabeda-prometheus"
      end

      private

      def prepare
        Admin::Metrics.known.each { |one| define(one) }
        ::Yabeda.configure! unless ::Yabeda.configured?
        @labels = Admin::Metrics.known.to_h { |one| [one.name, one.labels] }
      end

      def define(known)
        name = name_of(known).to_sym
        options = { tags: known.labels, unit: unit(known)&.to_sym, comment: known.help,
                    buckets: (Admin::Exposition::BOUNDS if known.type == :histogram) }.compact
        ::Yabeda.configure do
          group :pando
          public_send(known.type, name, **options)
        end
      end

      def gauge(family, labels, value) = metric(family).set(tags(family, labels), value)
      def counter(family, labels, value) = metric(family).increment(tags(family, labels), by: value)

      def histogram(family, labels, times)
        tags = tags(family, labels)
        each_time(times) { |seconds| metric(family).measure(tags, seconds) }
      end

      def metric(family) = ::Yabeda.metrics.fetch("pando_#{name_of(family)}")

      # Adapters write the unit behind it.
      def name_of(family) = family.name.delete_prefix("pando_").delete_suffix("_#{unit(family)}")
      def unit(family) = (family.unit if family.name.end_with?("_#{family.unit}"))

      # Adapters want all of them.
      def tags(family, labels) = @labels.fetch(family.name).to_h { |name| [name, labels[name].to_s] }
    end
  end
end
