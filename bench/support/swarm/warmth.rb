# frozen_string_literal: true

require "support/lab/figures"

module Bench
  module Swarm
    # How soon the replacement of a killed node is as fast as the others. The CPU time of each of its jobs is divided by
    # the median of the same class in the other nodes, so that the mix does not matter, and by the same ratio of those
    # nodes at that time, because the machine's speed varies. All kills are pooled.
    class Warmth
      SPANS = { first: 1..5, next: 6..25, wanted: 26..50, later: 51..100 }.freeze # numbers of a node's jobs
      OLD = 100 # own jobs of a node that serves for comparison, at least
      STEADY = 1000 # jobs that it and its ancestors have done, at least; fewer if the whole load is short
      KNOWN = 5 # jobs of a class that a median needs
      WARM = 1.10
      WINDOW = 10 # jobs of each new node

      # @param done [Array<Meter::Done>] during the kills
      # @param kills [Array<Hash>] pid: of the new node, at: of the kill
      # @param load [Integer] jobs of each node before the kills
      def initialize(done, kills, load: STEADY)
        @done = done
        @old = [STEADY, load / 2].min
        @kills = kills
        @fresh = kills.to_h { |kill| [kill[:pid], kill[:at]] }
      end

      def to_h
        { killed: @kills.size, steady: steady_jobs.size, spans: SPANS.transform_values { |span| span(span) },
          ratio: span(SPANS.fetch(:wanted))[:ratio], each: each, paces: paces, warm_after: warm_after,
          seconds: seconds }
      end

      private

      def steady_jobs
        @steady_jobs ||= @done.select { |one| one.number > OLD && one.number + one.ancestors > @old }
      end

      # Median CPU time of each class.
      def steady
        @steady ||= steady_jobs.group_by(&:job).select { |_, jobs| jobs.size >= KNOWN }
                               .transform_values { |jobs| Lab::Figures.percentile(jobs.map(&:cpu), 0.5) }
      end

      def newborn
        @newborn ||= @done.select { |one| @fresh.key?(one.pid) && steady.key?(one.job) && one.at > @fresh[one.pid] }
      end

      def ratios(numbers, jobs = newborn)
        jobs.select { |one| numbers.cover?(one.number) }.map { |one| relative(one) / pace(one.pid) }
      end

      def relative(one) = one.cpu / steady.fetch(one.job)

      # The time of jobs in the other nodes while this one ran its first.
      def pace(pid)
        (@paces ||= {})[pid] ||= begin
          ends = newborn.select { |one| one.pid == pid && one.number <= SPANS.values.last.end }.map(&:at)
          beside = steady_jobs.select { |one| steady.key?(one.job) && one.at.between?(@fresh[pid], ends.max) }
          beside.size < OLD ? 1.0 : Lab::Figures.percentile(beside.map { |one| relative(one) }, 0.5)
        end
      end

      def span(numbers)
        all = ratios(numbers)
        { jobs: all.size, ratio: Lab::Figures.percentile(all, 0.5), mean: (all.sum / all.size unless all.empty?) }
      end

      # The same for each kill.
      def each
        @fresh.keys.map do |pid|
          jobs = newborn.select { |one| one.pid == pid }
          Lab::Figures.percentile(ratios(SPANS.fetch(:wanted), jobs), 0.5)
        end
      end

      # The number of jobs after which a window of the new node's jobs is as fast as in the other nodes.
      def warm_after
        @warm_after ||= (0..(SPANS.values.last.end - WINDOW)).find do |from|
          ratio = Lab::Figures.percentile(ratios((from + 1)..(from + WINDOW)), 0.5)
          ratio && ratio <= WARM
        end
      end

      # The speed of the machine at each kill.
      def paces = @fresh.keys.map { |pid| pace(pid) if newborn.any? { |one| one.pid == pid } }

      # Medians of the time from the kill until the new node has done its first job, and until it is warm.
      def seconds
        { first: until_done(1), warm: warm_after && until_done(warm_after + 1) }
      end

      def until_done(count)
        own = @done.select { |one| @fresh.key?(one.pid) }.group_by(&:pid)
        waits = own.filter_map { |pid, jobs| jobs[count - 1]&.then { |job| job.at - @fresh[pid] } }
        Lab::Figures.percentile(waits, 0.5)
      end
    end
  end
end
