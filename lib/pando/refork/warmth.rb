# frozen_string_literal: true

require "pando/counted"
require "pando/mebibytes"

module Pando
  module Refork
    # Scores how warm a worker is, from measurements that the monitor has of it. A worker is warmer the more it has
    #
    # * served requests, by their logarithm: the first hundred warm as much as the next thousand;
    # * compiled code, if there is a JIT;
    # * served different kinds of requests: a thousand health checks warm nothing;
    # * settled: few page faults per request lately mean that little is still new to it.
    #
    # The score is the product of the four, so that the order of two workers does not depend on the others. A figure
    # that is not known for all of them (no JIT, no sample yet, a worker of an older Pando) is left out for all.
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

      def initialize(worker)
        @worker = worker
        @sample = worker.sample
      end

      # @return [Float] comparable only with scores of the same figures
      def score(figures = FIGURES) = figures.sum { |figure| Math.log(public_send(figure)) }

      def served = Math.log2(1 + worker.requests)
      def code = @sample&.code_bytes
      def kinds = @sample&.kinds

      # None and one fault are nearly the same.
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
