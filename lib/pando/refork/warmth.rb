# frozen_string_literal: true

require "pando/counted"
require "pando/mebibytes"

module Pando
  module Refork
    # How warm a worker is, by what was measured of it. Warmer is who has
    #
    # * served more requests, which counts by its logarithm: the first hundred warm as much as the next thousand;
    # * compiled more code, where a JIT is at work;
    # * served more kinds of requests: a thousand health checks warm nothing;
    # * settled: page faults for each request, lately, tell how much is still new to it.
    #
    # The product of the four decides, so that it does not matter who else is there. A figure that is not known of all
    # (no JIT, no sample yet, the worker of an older Pando) counts for none.
    class Warmth
      include Counted
      include Mebibytes

      FIGURES = %i[served code kinds settled].freeze

      attr_reader :worker

      # @param workers [Array<#requests, #sample>] whose samples are Sys::Sample, or nil
      # @return [Object, nil] one of `workers`, the first of equals
      def self.warmest(workers)
        all = workers.map { |worker| new(worker) }
        known = FIGURES.select { |figure| all.all?(&figure) && all.any? { |one| one.public_send(figure).positive? } }
        all.max_by { |one| one.score(known) }&.worker
      end

      # @param worker [#requests, #sample]
      def initialize(worker)
        @worker = worker
        @sample = worker.sample
      end

      # @return [Float] comparable with those of others by the same figures
      def score(figures = FIGURES) = figures.sum { |figure| Math.log(public_send(figure)) }

      def served = Math.log2(1 + worker.requests)
      def code = @sample&.code_bytes
      def kinds = @sample&.kinds

      # One fault is next to none.
      def settled = @sample&.faults_per_job&.then { |faults| 1 / Math.log2(2 + faults) }

      # @return [String] the figures, for people
      def to_s
        kinds = "of #{counted(self.kinds, "kind")}" if self.kinds&.positive?
        compiled = "#{mebibytes(code)} of JIT code" if code&.positive?
        faults = @sample&.faults_per_job
        ["#{counted(worker.requests, "request")} #{kinds}".strip, compiled,
         ("#{faults.round(1)} page faults a request lately" if faults)].compact.join(", ")
      end
    end
  end
end
