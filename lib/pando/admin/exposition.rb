# frozen_string_literal: true

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

      # @param openmetrics [Boolean]
      def initialize(openmetrics: false)
        @openmetrics = openmetrics
      end

      # @param families [Array<Family>]
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
  end
end
