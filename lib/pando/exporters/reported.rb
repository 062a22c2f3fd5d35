# frozen_string_literal: true

require "json"
require "pando/histogram"

module Pando
  module Exporters
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
