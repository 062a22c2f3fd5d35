# frozen_string_literal: true

require "pando/wording"

module Pando
  module Refork
    # The figures of one measurement, which {Auto} decides by. Made by Cluster::Generations::Survey, in the monitor.
    #
    #   generation  its number, or that of the generation whose dead mold it has replaced
    #   reforks     since the last mold that booted from cold
    #   seconds     since it began to serve in all slots
    #   workers     how many
    #   age         requests that a worker has served since its fork, on average
    #   most        requests of the worker that has served most
    #   warmed      the warmth of all workers together, in units of the warmest one's, by the logarithm of requests
    #   pss         bytes of its workers, and of a mold that stays, with shared pages counted once; nil: not known yet
    #   obstacle    why that cannot be known
    #   private     bytes of them that are private to one process
    #   cpu         seconds of CPU that a worker has used since its fork, on average, with its share of what the mold
    #               has used since it was promoted
    #   mold_cpu    that share
    Vitals = Struct.new(:generation, :reforks, :seconds, :workers, :age, :most, :warmed, :pss, :obstacle, :private,
                        :cpu, :mold_cpu, keyword_init: true)

    # Decides when to refork, and from which worker. Subclasses that count requests override {threshold}; {Auto}
    # measures instead: it returns true from `measures?` and implements `decide`. Policies remember only generations
    # that have served, so a failed refork needs no undoing.
    #
    # Owned by Cluster::Generations::Reforks, in the monitor.
    class Policy
      # @param _reforks [Integer] reforks finished since the last cold boot; 0 asks about the first one
      # @return [Integer, nil] requests that a worker must have served to be promoted; nil for never
      def threshold(_reforks) = nil

      # @return [Boolean] whether it decides by memory and CPU time
      def measures? = false

      # @return [Hash{Symbol => Object}] its state, for `pando status`
      def explain = {}

      # @param workers [Array<#requests, #sample>] those that may be promoted
      # @return [Object, nil] the one to promote, nil when there is none
      def choose(workers) = Warmth.warmest(workers)

      # @return [String] why this one of them was chosen, for an event
      def justify(worker, workers)
        "#{workers.size > 1 ? "the warmest of #{workers.size}" : "the only one to choose from"}: #{Warmth.new(worker)}"
      end

      # @return [Boolean] whether a user may ask for a refork (USR2)
      def manual? = true

      # The state that must survive an upgrade of the monitor, see Serializable. By default there is none.
      def serialized_fields = {}
      def take_up(_record, _prefix = "") = self
    end

    # `refork after: [500, 750, 1000]`: one request count for each generation.
    # The last one repeats for ever; a final `false` ends the reforking instead.
    class Schedule < Policy
      # @raise [ArgumentError] unless they are positive Integers, the last one possibly false
      def initialize(list)
        super()
        @ends = list.last == false
        @counts = (@ends ? list[0..-2] : list).dup.freeze
        return if @counts.any? && @counts.all? { |count| count.is_a?(Integer) && count.positive? }

        raise ArgumentError, "refork after: needs positive request counts, false only as the last, not #{list.inspect}"
      end

      def threshold(reforks)
        @counts.fetch(reforks) { @ends ? nil : @counts.last }
      end
    end

    # `refork :manual`: only when a user asks for it (USR2).
    class Manual < Policy; end

    # `refork false`: never, even when a user asks. The first mold stays.
    class Off < Policy
      def manual? = false
    end

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
      include Wording

      FIGURES = %i[served code kinds settled].freeze

      attr_reader :worker

      # @param workers [Array<#requests, #sample>] whose samples are Sys::Sample, or nil
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
