# frozen_string_literal: true

require "support/statistics"

module Bench
  module Lab
    # The measurements of one server under the same conditions, in one round or several. A figure is the median of the
    # rounds.
    class Outcome
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

      # @return [Integer] requests of a worker
      def requests = first(:requests) / workers

      # @return [String] for a row in a table of the same conditions
      def label = "#{first(:label)}#{", jemalloc" if asked_allocator == "jemalloc"}"

      # @return [Array] the conditions; each has a table
      def conditions = [app, ruby, yjit, workers, requests]

      private

      def first(name) = @runs.first[name]
    end

    # All outcomes.
    class Outcomes
      include Enumerable

      SAME = %i[app server tag time_scale allocator ruby yjit workers requests].freeze

      # @param runs [Array<Hash>] in the laboratory's format
      def initialize(runs)
        groups = runs.group_by { |run| run.values_at(*SAME) }.values
        @all = groups.map { |same| Outcome.new(same) }.sort_by { |each| order(each) }
      end

      def each(&) = @all.each(&)

      # @return [Array<Outcome>] with these values
      def where(**wanted) = select { |each| wanted.all? { |name, value| each.public_send(name) == value } }

      # @return [Outcome, nil] of another server under the same conditions; for a Pando, of the same checkout
      def beside(outcome, server, allocator: outcome.asked_allocator)
        same = server.start_with?("pando") ? { tag: outcome.tag, time_scale: outcome.time_scale } : {}
        where(conditions: outcome.conditions, server: server, asked_allocator: allocator, **same).first
      end

      private

      def order(outcome)
        [outcome.app, outcome.ruby.to_s, outcome.yjit ? 0 : 1, outcome.requests,
         Servers::ALL.keys.index(outcome.server) || 99, outcome.tag.to_s, outcome.time_scale.to_i,
         outcome.asked_allocator]
      end
    end
  end
end
