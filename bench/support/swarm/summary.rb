# frozen_string_literal: true

require "support/lab/figures"
require "support/swarm/warmth"

module Bench
  module Swarm
    # The figures of one run.
    class Summary
      # @param samples [Array<Hash>] jobs:, cpu:, at:, and those of Memory
      # @param done [Array<Meter::Done>]
      # @param total [Integer] jobs of the load; later ones were done while nodes were killed
      # @param kills [Array<Hash>] pid: of the new node, at: when the old one was killed
      def initialize(samples:, done:, total:, kills:, nodes:)
        @samples = samples
        @done = done
        @total = total
        @kills = kills
        @nodes = nodes
      end

      def to_h
        { jobs: @total, nodes: @nodes, failed: @done.count(&:failed), seconds: @samples.last[:at] - @samples.first[:at],
          memory: memory, jobs_per_cpu_second: { all: per_cpu_second(0), later: per_cpu_second(@total / 4) },
          job: job, kills: Warmth.new(@done.drop(@total), @kills, load: @total / @nodes).to_h, curve: curve }
      end

      private

      # Memory from the second quarter on, and at the end.
      def memory
        later = @samples.select { |sample| sample[:jobs] >= @total / 4 }
        %i[pss uss worker worker_uss].to_h do |field|
          points = later.map { |sample| [sample[:jobs], sample[field]] }
          [field, { average: Lab::Figures.average(points), final: @samples.last[field], boot: @samples.first[field] }]
        end
      end

      def per_cpu_second(from)
        cost = Lab::Figures.slope(@samples.map { |sample| [sample[:jobs], sample[:cpu]] }, from: from)
        cost && (1 / cost)
      end

      # Seconds of CPU time of a job's thread, in the load's second half.
      def job
        cpu = @done.first(@total).drop(@total / 2).map(&:cpu)
        { mean: cpu.sum / cpu.size, p50: Lab::Figures.percentile(cpu, 0.5), p99: Lab::Figures.percentile(cpu, 0.99) }
      end

      def curve
        began_at = @samples.first[:at]
        @samples.map { |sample| sample.merge(at: sample[:at] - began_at) }
      end
    end
  end
end
