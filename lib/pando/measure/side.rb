# frozen_string_literal: true

require "pando/measure/figures"

module Pando
  module Measure
    # The figures of one server.
    #
    # @api private
    class Side
      WORKERS = [4, 8, 16].freeze
      # With a single worker, all memory that several would share is private. (Puma does not even preload for one.)
      FEWEST = 2

      # @return [String]
      attr_reader :name
      # @return [Hash{Symbol => Object}] its settings
      attr_reader :facts

      # @param record [Contest::Record]
      # @param workers [Integer] that were measured
      def initialize(record, workers)
        @workers = workers
        @name = record.subject.name
        @facts = record.subject.facts
        @readings = record.readings
        @slices = record.slices
        @answers = record.answers
        @cpu = record.cpu
      end

      # @return [Array<Array(Float, Integer)>] requests of a worker, and bytes
      def curve = @readings.map { |requests, reading| [requests, reading.pss] }

      # @return [Float] bytes
      def average = Figures.average(curve)
      # @return [Integer] bytes
      def final = curve.last.last
      # @return [Integer] bytes, before the load
      def first = curve.first.last

      # @return [Float, nil] bytes that a further worker takes, on average; nil: not {#projected?}
      def each_worker = (projection.worker if projected?)

      # @return [Boolean] whether the measurement shows what more workers would take
      def projected? = @workers >= FEWEST

      # @return [Figures::Projection] of the averages
      def projection = @projection ||= Figures.projection(@readings)
      # @return [Figures::Projection] of the end
      def final_projection = @final_projection ||= Figures.projection(@readings.last(1))

      # @return [Float] seconds a request
      def cpu = @cpu / [@answers.size, 1].max
      # @return [Float, nil] the same; nil: too little to compare
      def telling_cpu = (cpu if @cpu >= Figures::LEAST_CPU)

      # @param share [Float] @return [Float, nil] seconds
      def latency(share) = Figures.percentile(seconds(@answers), share)

      # @return [Array<Hash>] each slice by itself
      def slices
        @slices.zip(@readings.drop(1)).map do |answers, (requests, reading)|
          { requests: requests, pss: reading.pss, workers: reading.workers,
            p50: Figures.percentile(seconds(answers), 0.5), p99: Figures.percentile(seconds(answers), 0.99) }
        end
      end

      # @return [Integer]
      def requests = @answers.size
      # @return [Hash{String => Integer}] failures, and how often each occurred
      def errors = @answers.map(&:trouble).compact.tally
      # @return [Integer, nil] nil: this server does not refork
      def reforks = facts[:reforks]

      def to_h
        { facts: facts, requests: requests, errors: errors, reforks: reforks,
          memory: { first: first, average: average.round, final: final, further_worker: each_worker&.round,
                    workers: projected? ? WORKERS.to_h { |number| [number, projected(number)] } : {} },
          cpu: cpu, latency: { p50: latency(0.5), p99: latency(0.99) }, slices: slices }
      end

      private

      def seconds(answers) = answers.map(&:seconds).compact
      def projected(number) = { average: projection.of(number).round, final: final_projection.of(number).round }
    end
  end
end
