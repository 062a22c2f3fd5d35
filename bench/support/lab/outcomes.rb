# frozen_string_literal: true

require "support/lab/conditions"
require "support/lab/servers"
require "support/lab/setup"
require "support/statistics"

module Bench
  module Lab
    # The measurements of one server under the same conditions, in one round or several. A figure is the median of the
    # rounds.
    class Outcome
      STEADY = 1000 # requests of a baseline, at least, for a percentile of it

      # @return [Array<Hash>]
      attr_reader :runs

      def initialize(runs)
        @runs = runs
      end

      # @param path [Array<Symbol>] keys of a figure in a run
      # @return [Numeric, nil]
      def [](*path) = all(*path).then { |values| values.empty? ? nil : Statistics.median(values) }

      # @return [Array<Numeric>] the figure of each round
      def all(*path) = @runs.filter_map { |run| run.dig(*path) }

      # @param kind [Symbol] :all or :warm
      # @return [Float, nil] p99 of the CPU time of first requests, as a multiple of steady state's
      def first_p99_ratio(kind)
        enough = @runs.select { |run| run.dig(:first, kind, :steady).to_i >= STEADY }
        Outcome.new(enough)[:first, kind, :p99_ratio]
      end

      # @return [Integer] failed requests of all rounds
      def failures = all(:failures).sum

      # @return [Integer, nil] the fewest workers that could serve at a time, in any round
      def fewest_workers = all(:fewest_workers).min

      def app = first(:app)
      def server = first(:server)
      def tag = first(:tag)
      def ruby = first(:ruby)
      def time_scale = first(:time_scale)
      def yjit = first(:yjit)
      def workers = first(:workers)
      def asked_allocator = first(:allocator)
      def allocator = first(:allocator_found)
      def curve = first(:curve)

      # @return [Setup]
      def setup = Setup.of(@runs.first)

      # @return [Integer] requests of a worker
      def requests = first(:requests) / workers

      # @return [String] for a row in a table of the same conditions
      def label = "#{first(:label)}#{", jemalloc" if asked_allocator == "jemalloc"}"

      # @return [Conditions] each has a table
      def conditions
        Conditions.new(app, ruby, yjit, workers, requests, *setup.to_h.values_at(:clients, :seed, :app_methods))
      end

      # @return [Array] what distinguishes one Pando from another
      def edition = [tag, time_scale, *setup.to_h.values_at(:settings, :checkout)]

      private

      def first(name) = @runs.first[name]
    end

    # All outcomes.
    class Outcomes
      include Enumerable

      SAME = %i[app server tag time_scale allocator ruby yjit requests].freeze

      # @param runs [Array<Hash>] in the laboratory's format
      def initialize(runs)
        groups = runs.map { |run| normal(run) }.group_by do |run|
          [run.values_at(*SAME), Setup.of(run)]
        end
        @all = groups.values.map { |same| Outcome.new(same) }.sort_by { |each| order(each) }
      end

      def each(&) = @all.each(&)

      # @return [Array<Outcome>] with these values
      def where(**wanted) = select { |each| wanted.all? { |name, value| each.public_send(name) == value } }

      # @return [Outcome, nil] of another server under the same conditions; for a Pando, of the same checkout
      def beside(outcome, server, allocator: outcome.asked_allocator)
        same = server.start_with?("pando") ? { edition: outcome.edition } : {}
        where(conditions: outcome.conditions, server: server, asked_allocator: allocator, **same).first
      end

      private

      # Files of before may say that another server had a tag or a time scale, which are Pando's only.
      def normal(run) = run[:server].start_with?("pando") ? run : { **run, tag: nil, time_scale: 1 }

      def order(outcome)
        [outcome.app, outcome.ruby.to_s, outcome.yjit ? 0 : 1, outcome.requests,
         Servers::ALL.keys.index(outcome.server) || 99, outcome.tag.to_s, outcome.time_scale.to_i,
         outcome.asked_allocator, *outcome.setup.digest.to_s]
      end
    end
  end
end
