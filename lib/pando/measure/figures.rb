# frozen_string_literal: true

module Pando
  module Measure
    # Percentiles, averages and projections.
    #
    # @api private
    module Figures
      # The memory of a server with any number of workers: a base that it has once or shares, and the private memory of
      # each worker.
      #
      # @!attribute base [Float] bytes
      # @!attribute worker [Float] bytes
      Projection = Struct.new(:base, :worker) do
        # @param workers [Integer]
        # @return [Float] bytes
        def of(workers) = base + (workers * worker)
      end

      # Seconds of CPU time. The system counts in ticks of 10 ms, so a ratio of smaller figures means nothing.
      LEAST_CPU = 0.5

      module_function

      # @param values [Array<Numeric>]
      # @param share [Float] 0.99 for the 99th percentile
      # @return [Numeric, nil] the smallest value that this share of the values does not exceed (nearest rank)
      def percentile(values, share)
        return if values.empty?

        values.sort[[(share * values.size).ceil - 1, 0].max]
      end

      # The mean height of a curve with straight lines between its points.
      #
      # @param points [Array<Array(Numeric, Numeric)>] in order
      # @return [Float, nil]
      def average(points)
        return points.first&.last&.to_f if points.size < 2 || points.first.first == points.last.first

        area = points.each_cons(2).sum { |(x1, y1), (x2, y2)| (x2 - x1) * (y1 + y2) / 2.0 }
        area / (points.last.first - points.first.first)
      end

      # @param points [Array<Array(Numeric, Reading)>] requests of a worker, and the memory then
      # @return [Projection]
      def projection(points)
        Projection.new(average(points.map { |x, reading| [x, reading.pss - (reading.own * reading.workers)] }),
                       average(points.map { |x, reading| [x, reading.own] }))
      end

      # @return [Float, nil] nil: a figure is missing, or the other is zero
      def ratio(one, other) = (one.fdiv(other) if one && other&.positive?)
    end
  end
end
