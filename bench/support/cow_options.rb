# frozen_string_literal: true

require "support/command_line"

module Bench
  # The command line of bench/cow.
  class CowOptions
    include CommandLine

    SERVERS = %w[pando pando-direct pitchfork puma puma-threads].freeze
    COMPARED = %w[pando-direct pitchfork].freeze
    POSITIVE = /\A[1-9]\d{0,6}\z/

    attr_reader :servers, :workers, :requests, :methods_count, :svg, :json

    def initialize(arguments)
      @servers = SERVERS
      @workers = 4
      @requests = 2000
      @methods_count = 100_000
      @svg = File.expand_path("../results/cow.svg", __dir__)
      read(arguments)
      usage("--check compares #{COMPARED.join(" and ")}") if check? && !(COMPARED - @servers).empty?
    end

    def yjit? = @yjit || false

    private

    def program = "bench/cow"

    def parser
      @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
        options.on("--servers LIST", Array, "of #{SERVERS.join(",")} (default all)") do |names|
          @servers = known(names, SERVERS)
        end
        options.on("--workers N", POSITIVE, "worker processes (default 4)") { |count| @workers = count.to_i }
        options.on("--requests N", POSITIVE, "the least in each load (default 2000)") { |count| @requests = count.to_i }
        options.on("--methods N", POSITIVE, "of the app (default 100000)") { |count| @methods_count = count.to_i }
        options.on("--yjit", "let the servers compile") { @yjit = true }
        options.on("--svg FILE", "the picture (default bench/results/cow.svg)") { |path| @svg = File.expand_path(path) }
        options.on("--json FILE", "the figures, in bytes") { |path| @json = File.expand_path(path) }
        options.on("--check", "exit 1 if pando-direct takes more after the refork than Pitchfork") { @check = true }
      end
    end
  end
end
