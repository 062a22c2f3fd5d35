# frozen_string_literal: true

require "support/command_line"
require "support/threads/contestants"

module Bench
  module Threads
    # The command line of bench/threads.
    class Options
      include CommandLine

      SECTIONS = %w[waiting mixed busy hello].freeze
      WORKS = %w[held real].freeze
      POSITIVE = /\A[1-9]\d{0,5}\z/
      NUMBERS = {
        workers: "processes in waiting and mixed", rounds: "of all servers in turn", seconds: "each measurement",
        requests: "to each server in waiting", parts: "of a request in mixed"
      }.freeze

      attr_reader :sections, :servers, :loads, :work, :refork, :base, :json, *NUMBERS.keys

      def initialize(arguments)
        @sections = SECTIONS
        @workers = 2
        @rounds = 3
        @seconds = 5
        @requests = 12_000
        @parts = 4
        @loads = [50, 70, 85]
        @work = "held"
        @refork = "auto"
        read(arguments)
      end

      def keep_alive? = @close.nil?

      # @param default [Array<String>] of a section
      # @return [Array<String>] its servers
      def contestants(default)
        names = @servers || default
        @base ? names : names - ["pando-base"]
      end

      private

      def program = "bench/threads"

      def parser
        @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
          sections_of(options, SECTIONS)
          servers_options(options)
          options.on("--loads LIST", Array, "percent, in mixed (default #{@loads.join(",")})") do |list|
            @loads = list.map { |load| Integer(load) }
          end
          options.on("--work HOW", WORKS, "in mixed: held or real (default #{@work})") { |how| @work = how }
          options.on("--refork WHEN", "Pando's setting in waiting (default #{@refork})") { |text| @refork = text }
          options.on("--close", "mixed: Puma ends each connection after a response") { @close = true }
          numbers_of(options, NUMBERS, POSITIVE)
          ending(options, "ratio")
        end
      end

      def servers_options(options)
        options.on("--servers LIST", Array, "puma-N, pando-N, pando-auto (default: by section)") do |names|
          wrong = names.grep_v(Contestants::NAME).first
          wrong ? raise(OptionParser::InvalidArgument, wrong) : @servers = names
        end
        options.on("--base PATH", "another checkout, compiled: pando-base in hello") do |path|
          @base = File.expand_path(path)
        end
      end
    end
  end
end
