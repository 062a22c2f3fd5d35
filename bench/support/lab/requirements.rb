# frozen_string_literal: true

require "support/lab/first_requests"
require "support/lab/servers"

module Bench
  module Lab
    # What `refork :auto` must reach, as ratios of one laboratory's figures.
    class Requirements
      # @!attribute name [String]
      # @!attribute limit [Float]
      # @!attribute value [Float, nil] nil: something that it takes was not measured
      # @!attribute words [String] what the figure does not say
      Line = Struct.new(:name, :limit, :value, :words) do
        def met? = value && value <= limit

        def verdict
          if value
            met? ? "pass" : "FAIL"
          else
            "not measured"
          end
        end
      end

      AVERAGE = %i[memory pss average].freeze
      RHO = 3.0 # per cent of memory that one per cent of CPU time is worth
      POOLED = 10_000 # first requests that a percentile of them takes

      def initialize(outcomes)
        @outcomes = outcomes
      end

      # @return [Array<Line>] for each Pando that was measured
      def lines = @lines ||= @outcomes.map(&:tag).uniq.flat_map { |tag| of(tag) }

      def met? = lines.none? { |line| line.value && !line.met? }

      # What a server takes of both, as a multiple of what `off` takes: memory counts as rho has it.
      #
      # @return [Float, nil]
      def self.price(outcome, off)
        memory = outcome[:memory, :pss, :average] / off[:memory, :pss, :average]
        (outcome[:cpu, :overall] / off[:cpu, :overall]) * (memory**(1 / RHO))
      end

      private

      def of(tag)
        autos = longest(@outcomes.where(server: "pando-auto", tag: tag, asked_allocator: "default"))
        rails = autos.select { |each| each.app == "rails" && each.yjit }
        lines = rails.flat_map { |each| rails_lines(each) } + fixed_lines(autos.select(&:yjit)) +
                roda_lines(autos) + constants_lines(autos)
        lines.each { |line| line.name = "#{tag}: #{line.name}" if tag }
      end

      # Of several loads the largest counts.
      def longest(autos)
        autos.group_by { |each| [each.app, each.yjit] }.values.map { |same| same.max_by(&:requests) }
      end

      def rails_lines(auto)
        off = @outcomes.beside(auto, "pando-off")
        [Line.new("average PSS, of Puma's as it comes", 0.5, over(auto, @outcomes.beside(auto, "puma"), *AVERAGE)),
         Line.new("average PSS, of Puma's with the same allocator", 0.65, over(auto, same_allocator(auto), *AVERAGE)),
         unbeaten(auto),
         Line.new("CPU a request, of no reforking's", 1.03, over(auto, off, :cpu, :overall)),
         Line.new("the same from the second thousand on", 1.0, over(auto, off, :cpu, :later)),
         first_requests(auto),
         Line.new("workers that were missing in a rollout", 0, auto.all(:fewest_workers).min.then do |few|
           few && (auto.workers - few)
         end)]
      end

      def over(auto, other, *path)
        auto[*path] / other[*path].to_f if other && auto[*path] && other[*path]
      end

      def same_allocator(auto)
        %w[default jemalloc].filter_map { |name| @outcomes.beside(auto, "puma", allocator: name) }
                            .find { |puma| puma.allocator == auto.allocator }
      end

      def unbeaten(auto)
        lists = (Servers::FIXED - %w[pando-off]).filter_map { |name| @outcomes.beside(auto, name) }
        better = lists.select { |list| list[*AVERAGE] < auto[*AVERAGE] && list[:cpu, :overall] < auto[:cpu, :overall] }
        Line.new("lists that beat it in both memory and CPU", 0, lists.empty? ? nil : better.size,
                 better.map(&:label).join("; "))
      end

      def first_requests(auto)
        first = FirstRequests.new(auto)
        same = first.of_the_same(@outcomes.beside(auto, "pando-off"))
        few = first.size < POOLED ? ", too few to say" : ""
        Line.new("p99 CPU of reforked workers' first 200 requests, of steady state's", 1.10, first.of_steady,
                 "#{first.size} requests#{few}; of warm ancestors #{rounded(first.of_steady_when_warm)}; " \
                 "of the same requests without reforking #{rounded(same)}")
      end

      def rounded(value) = value&.round(2) || "-"

      def fixed_lines(autos)
        autos.map do |auto|
          off = @outcomes.beside(auto, "pando-off")
          fixed = Servers::FIXED.filter_map { |name| @outcomes.beside(auto, name) }
          prices = off ? fixed.to_h { |each| [each, Requirements.price(each, off)] } : {}
          best, price = prices.min_by(&:last)
          Line.new("#{auto.app}: price, of the best fixed schedule's", 1.05,
                   best && fixed.size > 1 ? Requirements.price(auto, off) / price : nil, best&.label)
        end
      end

      def roda_lines(autos)
        autos.select { |each| each.app == "roda" && each.yjit }.flat_map do |auto|
          half = auto[:requests] / 2
          late = auto.runs.map { |run| run[:refork_places].count { |place| place > half } }.max
          off = @outcomes.beside(auto, "pando-off")
          [Line.new("roda: CPU a request, of no reforking's", 1.005, over(auto, off, :cpu, :overall)),
           Line.new("roda: reforks in the second half", 0, late)]
        end
      end

      def constants_lines(autos)
        autos.select { |each| each.app == "constants" && !each.yjit }.map do |auto|
          Line.new("constants without YJIT: private memory of a worker, of an unreforked one's", 0.15,
                   over(auto, @outcomes.beside(auto, "pando-off"), :memory, :worker_uss, :final),
                   "#{auto[:requests].to_i / auto.workers} requests each")
        end
      end
    end
  end
end
