# frozen_string_literal: true

require "support/lab/figures"

module Bench
  module Lab
    # The 99th percentile of a sample of requests as a multiple of a baseline's at the same mix, and how far it may be
    # off. Requests of one process are much alike. So the interval comes from drawing as many processes again, with
    # replacement, and not requests (a bootstrap by cluster). The draws are the same each time.
    class MatchedRatio
      SHARE = 0.99
      DRAWS = 200
      ENDS = [0.05, 0.95].freeze # of the draws: an interval of 90%

      # One request.
      #
      # @!attribute kind [Object] requests of the same kind are compared
      # @!attribute cpu [Integer] microseconds
      # @!attribute process [Object, nil] nil: not known
      Request = Struct.new(:kind, :cpu, :process)

      # @return [Array<Request>]
      attr_reader :sample, :baseline

      # @param sample [Array<Request>]
      # @param baseline [Array<Request>]
      def initialize(sample, baseline)
        @sample = sample
        @baseline = baseline
      end

      # @return [Float, nil] nil: nothing can be compared
      def value = Figures.ratio_at_equal_mix(pairs(sample), pairs(baseline), SHARE)

      # @return [Array(Float, Float), nil] nil: the processes are not known, or there is only one
      def interval
        @interval ||= begin
          ratios = all.size < 2 || all.include?(nil) ? [] : draws.sort
          ENDS.map { |share| Figures.percentile(ratios, share) } if ratios.any?
        end
      end

      # @return [Integer] processes of the sample
      def processes = sample.map(&:process).uniq.size

      private

      def pairs(requests) = requests.map { |request| [request.kind, request.cpu] }
      def all = @all ||= (sample + baseline).map(&:process).uniq

      def draws
        random = Random.new(1)
        Array.new(DRAWS) do
          times = Array.new(all.size, 0)
          all.size.times { times[random.rand(all.size)] += 1 }
          ratio(times)
        end.compact
      end

      # @param times [Array<Integer>] how often each process was drawn
      def ratio(times)
        wanted, there = amounts.map { |amounts| drawn(amounts, times) }
        total = wanted.sum { |kind, amount| there.key?(kind) ? amount : 0 }
        return if total.zero?

        above = percentile(falling.first, total) { |kind, process| there.key?(kind) ? times[process] : 0 }
        below = percentile(falling.last, total) do |kind, process|
          times[process].zero? ? 0 : times[process] * wanted[kind] / there[kind].to_f
        end
        above / below.to_f
      end

      # @return [Hash{Object => Integer}] requests of each kind that were drawn
      def drawn(amounts, times)
        amounts.each_with_index.with_object(Hash.new(0)) do |(kinds, process), sums|
          next if times[process].zero?

          kinds.each { |kind, amount| sums[kind] += amount * times[process] }
        end
      end

      # @return [Array<Array<Hash>>] of both: requests of each kind, by process
      def amounts
        @amounts ||= [sample, baseline].map do |requests|
          of_each = requests.group_by(&:process)
          all.map { |process| of_each.fetch(process, []).map(&:kind).tally }
        end
      end

      # Both, from the slowest to the fastest request: kind, number of the process, CPU time.
      def falling
        @falling ||= begin
          numbers = all.each_with_index.to_h
          [sample, baseline].map do |requests|
            requests.sort_by { |request| -request.cpu }
                    .map { |request| [request.kind, numbers[request.process], request.cpu] }
          end
        end
      end

      # The same as {Figures.weighted_percentile}, from above: few requests are beyond it.
      def percentile(falling, total)
        least = (SHARE * total) - 1e-9
        rest = total.to_f
        falling.each do |kind, process, cpu|
          rest -= yield(kind, process)
          return cpu if rest < least
        end
      end
    end
  end
end
