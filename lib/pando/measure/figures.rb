# frozen_string_literal: true

module Pando
  module Measure
    # The arithmetic.
    #
    # @api private
    module Figures
      # What a server of any number of workers takes: what its processes share and what is there once, and what each
      # worker has for itself.
      #
      # @!attribute base [Float] bytes
      # @!attribute worker [Float] bytes
      Projection = Struct.new(:base, :worker) do
        # @param workers [Integer]
        # @return [Float] bytes
        def of(workers) = base + (workers * worker)
      end

      # Seconds. It comes in ticks of 10 ms, so a ratio of less means nothing.
      LEAST_CPU = 0.5

      module_function

      # @param values [Array<Numeric>]
      # @param share [Float] 0.99 for the 99th percentile
      # @return [Numeric, nil] the smallest value that so many are not above (nearest rank)
      def percentile(values, share)
        return if values.empty?

        values.sort[[(share * values.size).ceil - 1, 0].max]
      end

      # The mean height of a curve: straight lines between its points.
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

      # @return [Float, nil] nil: there is nothing to divide by
      def ratio(one, other) = (one.fdiv(other) if one && other&.positive?)
    end
  end
end
