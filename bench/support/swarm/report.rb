# frozen_string_literal: true

require "support/columns"
require "support/swarm/contestants"

module Bench
  module Swarm
    # The output of bench/swarm: a line for each contestant, and Pando's targets.
    class Report
      MIB = 1024.0 * 1024
      PSS = 0.5
      WARM = 1.10
      COST = ["", "PSS, MiB", "at the end", "of a node", "USS of a node", "jobs/CPU s", "later", "reforks",
              "failed"].freeze
      KILLS = ["kill -9", "kills", "first job, s", "warm, s", "jobs until warm", "1-5", "6-25", "26-50",
               "51-100"].freeze

      # @param results [Hash{String => Hash}] by the contestant's name
      def initialize(results)
        @results = results
      end

      def to_s
        [Columns.new(COST, @results.map { |name, result| cost(name, result) }),
         Columns.new(KILLS, @results.map { |name, result| kills(name, result[:kills]) }),
         targets.map { |words, kept| "#{kept ? "kept" : "missed"}: #{words}" }.join("\n")].join("\n\n")
      end

      # @return [Hash{String => Boolean}] Pando's targets, and whether it reached them
      def targets
        pando = @results["pando-auto"] or return {}
        [memory(pando, "average"), memory(pando, "final"), warmth(pando)].compact.to_h
      end

      def kept? = targets.values.all?

      private

      def memory(pando, moment)
        other = @results["preloaded"] or return
        ratio = pss(pando, moment) / pss(other, moment)
        when_ = moment == "average" ? "from the second quarter on" : "at the end"
        [format("PSS %<when>s is %<ratio>.2f of processes forked from a preloaded parent, at most %<limit>.2f",
                when: when_, ratio: ratio, limit: PSS), ratio <= PSS]
      end

      def warmth(pando)
        ratio = pando.dig(:kills, :ratio) or return
        [format("jobs 26 to 50 of a replaced node take %<ratio>.2f of steady state's CPU time, at most %<limit>.2f",
                ratio: ratio, limit: WARM), ratio <= WARM]
      end

      def pss(result, moment) = result.dig(:memory, :pss, moment.to_sym).to_f

      def cost(name, result)
        memory = result[:memory]
        sizes = [memory[:pss][:average], memory[:pss][:final], memory[:worker][:average], memory[:worker_uss][:average]]
        [Contestants.label(name), *sizes.map { |size| number(size && (size / MIB), 0) },
         *%i[all later].map { |span| number(result[:jobs_per_cpu_second][span], 1) },
         result[:reforks].to_s, result[:failed].to_s]
      end

      def kills(name, kills)
        [Contestants.label(name), kills[:killed].to_s, number(kills[:seconds][:first], 2),
         number(kills[:seconds][:warm], 2), (kills[:warm_after] || "-").to_s,
         *kills[:spans].values.map { |span| number(span[:ratio], 2) }]
      end

      def number(value, digits) = value ? format("%.#{digits}f", value) : "-"
    end
  end
end
