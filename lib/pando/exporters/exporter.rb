# frozen_string_literal: true

require "json"
require "pando/admin/memory_survey"
require "pando/admin/metrics"
require "pando/admin/monitor"
require "pando/histogram"

module Pando
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
  end
end
