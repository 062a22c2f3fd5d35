# frozen_string_literal: true

require "support/command_line"
require "support/yjit_ruby"

module Bench
  # The command line of bench/pid.
  class PidOptions
    include CommandLine

    ROUNDS = { rounds: "of each measurement; the median counts" }.freeze

    attr_reader :rubies, :seconds, :rounds, :json

    def initialize(arguments)
      @seconds = "0.5"
      @rounds = 5
      read(arguments)
      @rubies ||= [Gem.ruby, YJITRuby.built].uniq
    end

    def yjit? = @yjit || false

    private

    def program = "bench/pid"

    def parser
      @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
        rubies_of(options)
        numbers_of(options, ROUNDS, /\A[1-9]\d?\z/)
        figures(options, "ratio")
      end
    end
  end
end
