# frozen_string_literal: true

require "json"
require "support/native"
require "support/priority"

module Bench
  # Runs bench/native/openload: requests at a fixed rate, timed from the moment at which they should have been sent.
  class OpenLoad
    class Failed < StandardError; end

    # @!attribute requests [Integer]
    # @!attribute p50 [Float] milliseconds, like p90, p99 and worst
    Latency = Struct.new(:requests, :p50, :p90, :p99, :worst, keyword_init: true)

    # @!attribute fast [Latency]
    # @!attribute slow [Latency]
    # @!attribute lag [Latency] how late the generator itself was
    # @!attribute sent [Integer]
    # @!attribute failed [Integer] requests that did not get status 200
    # @!attribute unanswered [Integer] requests without a response at the end; fast and slow include them with their age
    Result = Struct.new(:fast, :slow, :lag, :sent, :failed, :unanswered, keyword_init: true)

    # @param options [Hash] of the program, with underscores in the names
    def initialize(cores: nil, **options)
      @cores = cores
      @options = options
      @program = Native.program("openload")
    end

    # @param options [Hash] further ones
    # @return [Result]
    # @raise [Failed]
    def run(port, **options)
      arguments = arguments(port: port, **@options, **options)
      output = IO.popen([*priority, @program, *arguments], err: %i[child out], &:read)
      raise Failed, "openload: #{output}" unless Process.last_status.success?

      result(JSON.parse(output, symbolize_names: true))
    end

    private

    def priority = Priority.prefix(Priority::HIGH, @cores)
    def arguments(options) = options.flat_map { |name, value| ["--#{name.to_s.tr("_", "-")}", value.to_s] }

    def result(figures)
      Result.new(**figures, **figures.slice(:fast, :slow, :lag).transform_values { |each| Latency.new(**each) })
    end
  end
end
