# frozen_string_literal: true

require "json"
require "support/packages"

module Bench
  # Runs wrk, a closed-loop load generator: each of its connections sends the next request as soon as it has a response.
  class Wrk
    class Failed < StandardError; end

    SCRIPT = File.expand_path("wrk.lua", __dir__)

    # @!attribute requests [Integer] answered with a status below 400
    # @!attribute errors [Integer] everything else
    # @!attribute seconds [Float]
    Result = Struct.new(:requests, :errors, :seconds, keyword_init: true)

    # @param connections [Integer]
    # @param headers [Hash{String => String}]
    # @param cores [String, nil] the only CPUs that it may use, as for taskset(1)
    def initialize(connections:, headers: {}, cores: nil)
      @connections = connections
      @headers = headers
      @cores = cores
      @program = Packages.executable("wrk", "wrk")
    end

    # @return [Result]
    def run(port, seconds:)
      output = IO.popen([*command(seconds), "http://127.0.0.1:#{port}/"], err: %i[child out], &:read)
      figures = output[/^figures (.*)$/, 1] || raise(Failed, "wrk: #{output}")
      Result.new(**JSON.parse(figures, symbolize_names: true))
    end

    private

    def command(seconds)
      [*(["taskset", "-c", @cores] if @cores), @program, "-t", "1", "-c", @connections.to_s, "-d", "#{seconds}s",
       "--timeout", "30s", *@headers.flat_map { |name, value| ["-H", "#{name}: #{value}"] }, "-s", SCRIPT]
    end
  end
end
