# frozen_string_literal: true

require "support/command_line"
require "support/yjit_ruby"

module Bench
  # The command line of bench/batch.
  class BatchOptions
    include CommandLine

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
        rubies_of(options)
        options.on("--jobs LIST", Array, "of #{JOBS.join(",")} (default: all)") { |list| @jobs = known(list, JOBS) }
        numbers_of(options, NUMBERS, /\A[1-9]\d?\z/)
        figures(options, "ratio")
      end
    end
  end
end
