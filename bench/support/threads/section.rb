# frozen_string_literal: true

require "tmpdir"
require "support/columns"
require "support/cpu_time"
require "support/statistics"
require "support/threads/contestants"

module Bench
  module Threads
    # A part of bench/threads: measures its servers in turn, round by round, each alone with fresh processes, so that
    # other work on the machine affects all of them alike. The figures are medians of the rounds.
    #
    # A section has a title, SERVERS, and `measure(server, name, round)`, which returns a Hash of figures; `rows` makes
    # a table of them, and `targets` says what must hold.
    class Section
      # @param options [Options]
      def initialize(options)
        @options = options
        @names = options.contestants(self.class::SERVERS)
        @samples = Hash.new { |all, name| all[name] = [] }
      end

      # @return [self]
      def call
        prepare
        @options.rounds.times do |round|
          @names.rotate(round).each { |name| @samples[name] << run(name, round) }
        end
        self
      end

      def to_s = [title, Columns.new(head, rows), "spread of the rounds: #{noise}"].join("\n")

      # @return [Hash{String => Boolean}] what must hold, and whether it does
      def targets = {}

      # @return [Hash{String => Array<Hash>}] the figures of each round, by server
      def to_h = @samples

      private

      def prepare; end

      # @return [Bundle] with Puma
      def bundle = Servers.bundle("puma")

      def build(name, folder)
        Contestants.build(name, bundle: bundle, base: @options.base, app: app, folder: folder, **server_options(folder))
      end

      def run(name, round)
        warn "#{self.class.name[/\w+\z/].downcase}, round #{round + 1}: #{Contestants.label(name)} ..."
        Dir.mktmpdir("pando-bench") do |folder|
          server = build(name, folder)
          server.run { measure(server, name, round) }
        end
      end

      # @yieldreturn [Integer] requests
      # @return [Float] seconds of CPU time for each
      def cpu_per_request(server)
        before = CPUTime.of(server.pids)
        requests = yield
        (CPUTime.of(server.pids) - before) / [requests, 1].max
      end

      def middle(name, field) = Statistics.median(@samples.fetch(name).map { |figures| figures.fetch(field) })

      # @return [Float, nil] a figure as a multiple of the other server's
      def ratio(name, other, field)
        middle(name, field) / middle(other, field).to_f if @samples.key?(name) && @samples.key?(other)
      end

      # @return [Hash{String => Boolean}] a target, if both servers were measured
      def target(name, other, field, words, most: nil, least: nil)
        value = ratio(name, other, field) or return {}

        limit = most ? "at most #{most}" : "at least #{least}"
        { "#{Contestants.label(name)}: #{value.round(2)} of #{Contestants.label(other)}'s #{words}, #{limit}" =>
            most ? value <= most : value >= least }
      end

      def times(name, other, field) = ratio(name, other, field)&.then { |value| format("%.2f", value) } || "-"

      # How much the rounds of one server differ, at most.
      def noise
        noisy.map do |field, words|
          spreads = @samples.values.map { |samples| Statistics.spread(samples.map { |figures| figures.fetch(field) }) }
          "#{words} +-#{(100 * spreads.max).round}%"
        end.join(", ")
      end
    end
  end
end
