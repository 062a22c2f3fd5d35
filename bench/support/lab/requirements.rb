# frozen_string_literal: true

require "support/lab/comparison"
require "support/lab/figures"
require "support/lab/first_requests"
require "support/lab/servers"
require "support/lab/setup"

module Bench
  module Lab
    # What `refork :auto` must reach, as ratios of figures from the same laboratory: for each app, on each Ruby.
    class Requirements
      # @!attribute name [String]
      # @!attribute limit [Float]
      # @!attribute value [Float, nil] nil: a measurement that it needs is missing
      # @!attribute words [String] an explanation of the figure
      # @!attribute spread [Spread, nil] nil: the figure is no estimate
      Line = Struct.new(:name, :limit, :value, :words, :spread) do
        def met? = value && verdict == "pass"
        def missed? = verdict == "FAIL"

        def verdict
          return "not measured" unless value

          low, high = spread ? spread.ends : [value, value]
          if spread&.few || low.nil? || (low <= limit && high > limit)
            "too few to say"
          else
            low > limit ? "FAIL" : "pass"
          end
        end

        # @return [String]
        def figure
          return "-" unless value

          spread&.ends ? Figures.with_interval(value, spread.ends) : format("%.3f", value)
        end
      end

      # How sure an estimate is.
      #
      # @!attribute ends [Array(Float, Float), nil] of its interval; nil: not known
      # @!attribute few [Boolean] whether there are too few requests, whatever the interval is
      Spread = Struct.new(:ends, :few)

      AVERAGE = %i[memory pss average].freeze
      RHO = 3.0 # per cent of memory that one per cent of CPU time is worth
      SMALL = %w[constants roda].freeze # apps that share nothing except what they were made to show

      def initialize(outcomes)
        @outcomes = outcomes
      end

      # @return [Array<Line>] for each measured Pando
      def lines = @lines ||= @outcomes.map(&:tag).uniq.flat_map { |tag| of(tag) }

      # @return [Boolean] whether none is missed; what was not measured, or too little, is not missed
      def met? = lines.none?(&:missed?)

      # Memory and CPU time of a server in one figure, as a multiple of `off`; rho weighs them.
      #
      # @return [Float, nil]
      def self.price(outcome, off)
        memory = outcome[:memory, :pss, :average] / off[:memory, :pss, :average]
        (outcome[:cpu, :overall] / off[:cpu, :overall]) * (memory**(1 / RHO))
      end

      private

      def of(tag)
        autos = longest(@outcomes.where(server: "pando-auto", tag: tag, asked_allocator: "default"))
        whole = autos.select { |each| each.yjit && !SMALL.include?(each.app) }
        lines = whole.flat_map { |each| app_lines(each) } + fixed_lines(autos.select(&:yjit)) +
                roda_lines(autos) + constants_lines(autos) + autos.map { |each| failures(each) }
        tag ? lines.each { |line| line.name = "#{tag}: #{line.name}" } : lines
      end

      # If there are several loads, the largest counts.
      def longest(autos)
        alike = autos.group_by { |each| [each.app, each.ruby, each.yjit, each.time_scale, each.setup] }
        alike.values.map { |same| same.max_by(&:requests) }
      end

      def app_lines(auto)
        lines = [*rival_lines(auto), unbeaten(auto), *unreforked_lines(auto), first_requests(auto),
                 Line.new("workers that were missing in a rollout", 0, missing(auto))]
        lines.each { |line| line.name = "#{place(auto)}: #{line.name}" }
      end

      def place(auto)
        scale = ", time scale #{auto.time_scale}" if auto.time_scale.to_i > 1
        workers = "#{auto.workers} workers" unless auto.workers == Setup::DEFAULTS[:workers]
        ["#{auto.app}, Ruby #{auto.ruby}#{scale}", *workers, *auto.conditions.unusual, *auto.setup.words].join(", ")
      end

      def rival_lines(auto)
        rivals = Comparison.new(@outcomes.where(conditions: auto.conditions))
        list = rivals.pitchfork
        [Line.new("average PSS, of Puma's as it comes", 0.5, over(auto, rivals.puma, *AVERAGE)),
         Line.new("average PSS, of Puma's with jemalloc", 0.6, over(auto, rivals.puma_with_jemalloc, *AVERAGE)),
         Line.new("average PSS, of Pitchfork's best list with jemalloc", 1.0, over(auto, list, *AVERAGE), list&.label),
         Line.new("CPU a request, of Puma's", 0.95, over(auto, rivals.puma, :cpu, :overall))]
      end

      def unreforked_lines(auto)
        off = @outcomes.beside(auto, "pando-off")
        [Line.new("CPU a request, of no reforking's", 1.03, over(auto, off, :cpu, :overall)),
         Line.new("the same from the second thousand on", 1.0, over(auto, off, :cpu, :later))]
      end

      def missing(auto)
        few = auto.fewest_workers
        few && (auto.workers - few)
      end

      # Those of other servers do not fail Pando, but spoil the comparison.
      def failures(auto)
        others = (@outcomes.where(conditions: auto.conditions) - [auto]).select { |each| each.failures.positive? }
        Line.new("#{place(auto)}#{", without YJIT" unless auto.yjit}: failed requests", 0, auto.failures,
                 others.map { |each| "#{each.label}: #{each.failures}" }.join("; "))
      end

      def over(auto, other, *path) = Comparison.ratio(auto, other, path)

      def unbeaten(auto)
        lists = (Servers::FIXED - %w[pando-off]).filter_map { |name| @outcomes.beside(auto, name) }
        better = lists.select { |list| list[*AVERAGE] < auto[*AVERAGE] && list[:cpu, :overall] < auto[:cpu, :overall] }
        Line.new("lists that beat it in both memory and CPU", 0, lists.empty? ? nil : better.size,
                 better.map(&:label).join("; "))
      end

      def first_requests(auto)
        first = FirstRequests.new(auto)
        ratio = first.of_next_when_warm
        off, puma = %w[pando-off puma].map { |name| @outcomes.beside(auto, name) }
        Line.new("p99 CPU of reforked workers' first 200 requests, of their next 400", 1.10, ratio.value,
                 "#{amount(first)}#{canaries(first)}#{without_reforking(first, off)}; of steady state's " \
                 "#{rounded(first.of_steady_when_warm)}, with the app's warm-up #{rounded(first.of_steady)}; of " \
                 "the same requests without reforking #{rounded(first.of_the_same(off))}, to Puma " \
                 "#{rounded(first.of_the_same(puma))}", Spread.new(ratio.interval, first.few?))
      end

      def amount(first)
        ratio = first.of_next_when_warm
        "#{ratio.sample.size} requests#{", too few to say" if first.few?} (#{ratio.baseline.size} next ones, " \
          "#{ratio.interval ? "#{ratio.processes} processes" : "processes not known"})"
      end

      def canaries(first)
        canaries, others = first.of_canaries_and_others
        "; canaries #{rounded(canaries)}, the others #{rounded(others)}" if canaries || others
      end

      def without_reforking(first, off)
        ratio = first.of_next_without_reforking(off)
        return unless ratio.interval

        "; workers without reforking, from the same ages on, #{Figures.with_interval(ratio.value, ratio.interval)}, " \
          "#{ratio.sample.size} requests"
      end

      def rounded(value) = value&.round(2) || "-"

      def fixed_lines(autos)
        autos.map do |auto|
          off = @outcomes.beside(auto, "pando-off")
          fixed = Servers::FIXED.filter_map { |name| @outcomes.beside(auto, name) }
          prices = off ? fixed.to_h { |each| [each, Requirements.price(each, off)] } : {}
          best, price = prices.min_by(&:last)
          Line.new("#{place(auto)}: price, of the best fixed schedule's", 1.05,
                   best && fixed.size > 1 ? Requirements.price(auto, off) / price : nil, best&.label)
        end
      end

      def roda_lines(autos)
        autos.select { |each| each.app == "roda" && each.yjit }.flat_map do |auto|
          half = auto[:requests] / 2
          late = auto.runs.map { |run| run[:refork_places].count { |place| place > half } }.max
          off = @outcomes.beside(auto, "pando-off")
          [Line.new("#{place(auto)}: CPU a request, of no reforking's", 1.005, over(auto, off, :cpu, :overall)),
           Line.new("#{place(auto)}: reforks in the second half", 0, late)]
        end
      end

      def constants_lines(autos)
        autos.select { |each| each.app == "constants" && !each.yjit }.map do |auto|
          Line.new("#{place(auto)}, without YJIT: private memory of a worker, of an unreforked one's", 0.15,
                   over(auto, @outcomes.beside(auto, "pando-off"), :memory, :worker_uss, :final),
                   "#{auto[:requests].to_i / auto.workers} requests each")
        end
      end
    end
  end
end
