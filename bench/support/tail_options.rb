# frozen_string_literal: true

require "support/command_line"
require "support/servers"

module Bench
  # The command line of bench/tail.
  class TailOptions
    include CommandLine

    SERVERS = %w[pando puma puma-threads falcon].freeze
    WAITS = %w[holds yields].freeze
    SLOW_SHARE = 0.05
    POSITIVE = /\A[1-9]\d{0,4}\z/

    NUMBERS = {
      workers: "worker processes", connections: "kept alive", load: "percent of what the workers can do",
      seconds: "each measurement", rounds: "of all servers in turn", fast: "milliseconds", slow: "milliseconds"
    }.freeze

    attr_reader :servers, :waits, :assign, :json, *NUMBERS.keys

    def initialize(arguments)
      @servers = SERVERS
      @waits = WAITS
      @workers = 8
      @connections = 32
      @load = 65
      @seconds = 20
      @rounds = 3
      @fast = 2
      @slow = 50
      @assign = "free"
      read(arguments)
    end

    # @return [Float] requests per second: a share of what the workers could do if they were always busy
    def rate = load / 100.0 * workers * 1000 / ((fast * (1 - SLOW_SHARE)) + (slow * SLOW_SHARE))

    private

    def program = "bench/tail"

    def parser
      @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
        servers_of(options, Servers::ALL.keys)
        options.on("--waits LIST", Array, "of #{WAITS.join(",")} (default both)") { |list| @waits = known(list, WAITS) }
        numbers_of(options, NUMBERS, POSITIVE)
        options.on("--assign HOW", %w[free bound], "requests to connections: free, bound (default free)") do |how|
          @assign = how
        end
        ending(options, "ratio")
      end
    end
  end
end
