# frozen_string_literal: true

require "pando/exporters/exporter"
require "pando/version"

module Pando
  module Exporters
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

      # Units are not part of a name there.
      def dotted(family) = "pando.#{name_of(family).delete_suffix("_#{family.unit}")}"
      def attributes(labels) = labels.to_h { |name, value| [name.to_s, value.to_s] }
    end
  end
end
