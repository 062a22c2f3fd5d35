# frozen_string_literal: true

require "etc"
require "optparse"
require "support/servers"

module Bench
  # The command line of bench/slow.
  class SlowOptions
    SERVERS = %w[pando].freeze
    WHOLE = /\A\d{1,7}\z/
    NUMBERS = {
      workers: "worker processes", slow: "slow clients", idle: "connections kept idle",
      poke: "requests on some of these", rate: "a second, of the normal client", seconds: "each measurement",
      rounds: "without and with the slow clients", large: "bytes that the slow readers ask for"
    }.freeze

    attr_reader :servers, :json, *NUMBERS.keys

    def initialize(arguments)
      @servers = SERVERS
      @workers = 2
      @slow = 2000
      @idle = 10_000
      @poke = 1000
      @rate = 200
      @seconds = 10
      @rounds = 3
      @large = 196_608
      parser.parse!(arguments)
      usage("unexpected: #{arguments.join(" ")}") unless arguments.empty?
    rescue OptionParser::ParseError => e
      usage(e.message)
    end

    # @return [Hash{Symbol => Integer}] kind of slow clients => how many
    def kinds
      third = slow / 3
      { heads: slow - (third * 2), bodies: third, readers: third }
    end

    # The server has the first CPU for itself and the clients the second, where there are two.
    def cores = Etc.nprocessors > 1 ? %w[0 1] : [nil, nil]

    def check? = @check || false

    private

    def parser
      @parser ||= OptionParser.new("Usage: bench/slow [options]") do |options|
        meaning = "of #{Servers::ALL.keys.join(",")} (default #{SERVERS.join(",")})"
        options.on("--servers LIST", Array, meaning) do |names|
          @servers = known(names)
        end
        numbers(options)
        options.on("--json FILE", "all figures") { |path| @json = File.expand_path(path) }
        options.on("--check", "exit 1 if Pando misses a figure of docs/benchmarks.md") { @check = true }
        options.on("--ruby PATH", "to run on; this: the one at hand (default: one with YJIT)")
      end
    end

    def numbers(options)
      NUMBERS.each do |name, meaning|
        default = instance_variable_get(:"@#{name}")
        options.on("--#{name} N", WHOLE, "#{meaning} (default #{default})") do |number|
          instance_variable_set(:"@#{name}", number.to_i)
        end
      end
    end

    def known(names)
      unknown = names - Servers::ALL.keys
      return names if unknown.empty?

      raise OptionParser::InvalidArgument, "#{unknown.first} (known: #{Servers::ALL.keys.join(", ")})"
    end

    def usage(message)
      warn "bench/slow: #{message}", parser.help
      exit 2
    end
  end
end
