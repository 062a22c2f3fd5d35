# frozen_string_literal: true

module Bench
  module Lab
    # Percentiles, averages and spans.
    module Figures
      module_function

      # @param values [Array<Numeric>]
      # @param share [Float] 0.99 for the 99th percentile
      # @return [Numeric, nil] the smallest value that this share of the values does not exceed (nearest rank)
      def percentile(values, share)
        return if values.empty?

        values.sort[[(share * values.size).ceil - 1, 0].max]
      end

      # @param pairs [Array<Array(Numeric, Float)>] values and their weights
      def weighted_percentile(pairs, share)
        wanted = share * pairs.sum(&:last)
        sum = 0.0
        pairs.sort_by(&:first).each { |value, weight| return value if (sum += weight) >= wanted - 1e-9 }
        nil
      end

      # @param value [Float]
      # @param ends [Array(Float, Float)] of its interval
      # @return [String] as in "1.13 (1.05 to 1.21)"
      def with_interval(value, ends)
        value, low, high = [value, *ends].map { |each| format("%.2f", each) }
        "#{value} (#{low} to #{high})"
      end

      # The mean height of a curve with straight lines between its points.
      #
      # @param points [Array<Array(Numeric, Numeric)>] in order
      # @return [Float, nil]
      def average(points)
        return points.first&.last&.to_f if points.size < 2

        area = points.each_cons(2).sum { |(x1, y1), (x2, y2)| (x2 - x1) * (y1 + y2) / 2.0 }
        area / (points.last.first - points.first.first)
      end

      # The slope of a curve between two places, from the points next to them.
      #
      # @return [Float, nil]
      def slope(points, from: points.first.first, to: points.last.first)
        first = points.min_by { |x, _| (x - from).abs }
        last = points.min_by { |x, _| (x - to).abs }
        first.first == last.first ? nil : (last.last - first.last) / (last.first - first.first).to_f
      end

      # The values of `steady`, weighted so that each target has the same share as in `sample`. Targets that do not
      # occur in `steady` cannot be compared and are left out of both.
      #
      # @param sample [Array<Array(Object, Numeric)>] targets and values
      # @param steady [Array<Array(Object, Numeric)>]
      # @return [Array(Array<Numeric>, Array<Array(Numeric, Float)>)] values, and values with weights
      def matched(sample, steady)
        wanted = sample.map(&:first).tally
        there = steady.map(&:first).tally
        values = sample.filter_map { |target, value| value if there.key?(target) }
        pairs = steady.filter_map do |target, value|
          [value, wanted[target] / there[target].to_f] if wanted.key?(target)
        end
        [values, pairs]
      end

      # @return [Float, nil] a percentile of the sample, as a multiple of the steady state's at the same mix
      def ratio_at_equal_mix(sample, steady, share)
        values, pairs = matched(sample, steady)
        return if values.empty?

        percentile(values, share) / weighted_percentile(pairs, share).to_f
      end

      # @return [Float, nil] the same for the mean
      def mean_ratio_at_equal_mix(sample, steady)
        values, pairs = matched(sample, steady)
        return if values.empty?

        (values.sum / values.size) / (pairs.sum { |value, weight| value * weight } / pairs.sum(&:last))
      end

      # Merges moments of change into spans: changes within `gap` of each other belong to one span.
      #
      # @param moments [Array<Array(Float, Float)>] before and after each change
      # @return [Array<Array(Float, Float)>]
      def spans(moments, gap:)
        moments.sort.each_with_object([]) do |(from, to), spans|
          if spans.any? && from - spans.last.last <= gap
            spans.last[1] = [to, spans.last.last].max
          else
            spans << [from, to]
          end
        end
      end

      # @return [Boolean] whether from..to overlaps one of the spans
      def within?(spans, from, to) = spans.any? { |first, last| from <= last && to >= first }
    end
  end
end
