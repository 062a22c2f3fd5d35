# frozen_string_literal: true

require "support/command_line"
require "support/yjit_ruby"

module Bench
  # The command line of bench/batch.
  class BatchOptions
    include CommandLine

    SECONDS = /\A\d{1,2}(?:\.\d{1,3})?\z/
    JOBS = %w[none 1ms 100ms].freeze
    NUMBERS = { threads: "that do the jobs", rounds: "of each measurement; the median counts" }.freeze

    attr_reader :rubies, :seconds, :rounds, :threads, :jobs, :json

    def initialize(arguments)
      @seconds = "2"
      @rounds = 3
      @threads = 10
      @jobs = JOBS
      read(arguments)
      @rubies ||= [Gem.ruby, YJITRuby.built].uniq
    end

    def yjit? = @yjit || false

    private

    def program = "bench/batch"

    def parser
      @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
        options.on("--rubies LIST", Array, "paths; this: the one at hand (default: this and one with YJIT)") do |list|
          @rubies = list.map { |path| path == "this" ? Gem.ruby : path }
        end
        options.on("--yjit", "let those that can compile") { @yjit = true }
        options.on("--jobs LIST", Array, "of #{JOBS.join(",")} (default: all)") { |list| @jobs = known(list, JOBS) }
        options.on("--seconds N", SECONDS, "each measurement (default #{@seconds})") { |seconds| @seconds = seconds }
        numbers_of(options, NUMBERS, /\A[1-9]\d?\z/)
        options.on("--json FILE", "all figures") { |path| @json = File.expand_path(path) }
        options.on("--check", "exit 1 if Pando misses a ratio of docs/benchmarks.md") { @check = true }
      end
    end
  end
end
