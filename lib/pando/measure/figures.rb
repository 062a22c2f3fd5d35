# frozen_string_literal: true

module Pando
  module Measure
    # Percentiles, averages and projections.
    module Figures
      # The memory of a server with any number of workers, in bytes: a base that it has once or shares, and the private
      # memory of each worker.
      Projection = Struct.new(:base, :worker) do
        def of(workers) = base + (workers * worker)
      end

      module_function

      # @param share [Float] 0.99 for the 99th percentile
      # @return [Numeric, nil] the smallest value that this share of the values does not exceed (nearest rank)
      def percentile(values, share) = values.sort[[(share * values.size).ceil - 1, 0].max]

      # The mean height of a curve with straight lines between its points.
      # @param points [Array<Array(Numeric, Numeric)>] in order
      def average(points)
        return points.first&.last&.to_f if points.size < 2 || points.first.first == points.last.first

        area = points.each_cons(2).sum { |(x1, y1), (x2, y2)| (x2 - x1) * (y1 + y2) / 2.0 }
        area / (points.last.first - points.first.first)
      end

      # @param points [Array<Array(Numeric, Reading)>] requests of a worker, and the memory then
      def projection(points)
        Projection.new(average(points.map { |x, reading| [x, reading.pss - (reading.own * reading.workers)] }),
                       average(points.map { |x, reading| [x, reading.own] }))
      end

      # @return [Float, nil] nil: a figure is missing, or the other is zero
      def ratio(one, other) = (one.fdiv(other) if one && other&.positive?)
    end

    # What was measured of one server: a Subject, the workers that it was started with, an Array of the requests of a
    # worker and the ProcessTree::Reading then, and the answers (Client::Answer) of each slice.
    Side = Struct.new(:subject, :capacity, :readings, :slices) do
      def name = subject.name
      # Its settings, first read while the server runs.
      def facts = @facts ||= subject.facts
      def answers = slices.flatten(1)

      # @return [Array<Array(Float, Integer)>] requests of a worker, and bytes
      def curve = readings.map { |requests, reading| [requests, reading.pss] }
      # Bytes on average, at the end, and before the load.
      def average = Figures.average(curve)
      def final = curve.last.last
      def first = curve.first.last

      # Whether the measurement shows what more workers would take. A single worker has all memory that several would
      # share for itself. (Puma does not even preload for one.)
      def projected? = capacity > 1
      # @return [Figures::Projection] of the averages
      def projection = Figures.projection(readings)
      # @return [Float, nil] bytes that a further worker takes, on average; nil: not {#projected?}
      def each_worker = (projection.worker if projected?)

      # Seconds of CPU time under load, and of a request; `telling_cpu` is nil if there is too little to compare.
      def cpu = readings.last.last.cpu - readings.first.last.cpu
      def cpu_each = cpu / [answers.size, 1].max
      def telling_cpu = (cpu_each if cpu >= Side::LEAST_CPU)

      def latency(share, among = answers) = Figures.percentile(among.filter_map(&:seconds), share)
      # @return [Hash{String => Integer}] failures, and how often each occurred
      def errors = answers.filter_map(&:trouble).tally
      # @return [Integer, nil] nil: this server does not refork
      def reforks = facts[:reforks]

      def to_h
        { facts: facts, requests: answers.size, errors: errors, reforks: reforks,
          memory: { first: first, average: average.round, final: final, further_worker: each_worker&.round,
                    workers: projected? ? Side::WORKERS.to_h { |number| [number, projected(number)] } : {} },
          cpu: cpu_each, latency: { p50: latency(0.5), p99: latency(0.99) },
          slices: slices.zip(readings.drop(1)).map { |answers, (done, reading)| slice(answers, done, reading) } }
      end

      private

      def projected(number)
        { average: projection.of(number).round, final: Figures.projection(readings.last(1)).of(number).round }
      end

      def slice(answers, requests, reading)
        { requests: requests, pss: reading.pss, workers: reading.workers,
          p50: latency(0.5, answers), p99: latency(0.99, answers) }
      end
    end
    # Numbers of workers of which the memory is projected.
    Side::WORKERS = [4, 8, 16].freeze
    # Seconds of CPU time. The system counts in ticks of 10 ms, so a ratio of smaller figures means nothing.
    Side::LEAST_CPU = 0.5
  end
end
