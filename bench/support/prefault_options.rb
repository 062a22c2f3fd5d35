# frozen_string_literal: true

require "support/command_line"

module Bench
  # The command line of bench/prefault.
  class PrefaultOptions
    include CommandLine

    POSITIVE = /\A[1-9]\d{0,6}\z/

    attr_reader :workers, :reforks, :requests, :canary, :settings, :json

    def initialize(arguments)
      @workers = 4
      @reforks = 20
      @requests = 600
      @settings = %w[false true]
      @canary = "{ requests: 100, seconds: 1, longest: 30 }"
      read(arguments)
    end

    private

    def program = "bench/prefault"

    def parser
      @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
        numbers_of(options, { workers: "worker processes", reforks: "of each server",
                              requests: "that each worker of a generation serves" }, POSITIVE)
        options.on("--settings LIST", "of refork prefault:, separated by semicolons (default false;true)") do |list|
          @settings = list.split(";").map(&:strip)
        end
        options.on("--canary TEXT", "the setting (default #{@canary})") { |text| @canary = text }
        ending(options, "standard")
      end
    end
  end
end
