# frozen_string_literal: true

require "optparse"
require "support/servers"

module Bench
  # The command line of bench/tail.
  class TailOptions
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
      parser.parse!(arguments)
      usage("unexpected: #{arguments.join(" ")}") unless arguments.empty?
    rescue OptionParser::ParseError => e
      usage(e.message)
    end

    # @return [Float] requests a second: so much of what the workers could do if each were busy all the time
    def rate = load / 100.0 * workers * 1000 / ((fast * (1 - SLOW_SHARE)) + (slow * SLOW_SHARE))

    def check? = @check || false

    private

    def parser
      @parser ||= OptionParser.new("Usage: bench/tail [options]") do |options|
        meaning = "of #{Servers::ALL.keys.join(",")} (default #{SERVERS.join(",")})"
        options.on("--servers LIST", Array, meaning) do |names|
          @servers = known(names, Servers::ALL.keys)
        end
        options.on("--waits LIST", Array, "of #{WAITS.join(",")} (default both)") { |list| @waits = known(list, WAITS) }
        numbers(options)
        options.on("--assign HOW", %w[free bound], "requests to connections: free, bound (default free)") do |how|
          @assign = how
        end
        options.on("--json FILE", "all figures") { |path| @json = File.expand_path(path) }
        options.on("--check", "exit 1 if Pando misses a ratio of docs/benchmarks.md") { @check = true }
        options.on("--ruby PATH", "to run on; this: the one at hand (default: one with YJIT)")
      end
    end

    def numbers(options)
      NUMBERS.each do |name, meaning|
        default = instance_variable_get(:"@#{name}")
        options.on("--#{name} N", POSITIVE, "#{meaning} (default #{default})") do |number|
          instance_variable_set(:"@#{name}", number.to_i)
        end
      end
    end

    def known(names, all)
      unknown = names - all
      return names if unknown.empty?

      raise OptionParser::InvalidArgument, "#{unknown.first} (known: #{all.join(", ")})"
    end

    def usage(message)
      warn "bench/tail: #{message}", parser.help
      exit 2
    end
  end
end
