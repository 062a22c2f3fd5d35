# frozen_string_literal: true

require "json"
require "support/native"
require "support/priority"

module Bench
  # bench/native/openload: requests at their own pace, timed from the moment they were meant to be sent.
  class OpenLoad
    class Failed < StandardError; end

    # @!attribute requests [Integer]
    # @!attribute p50 [Float] milliseconds, as p90, p99 and worst
    Latency = Struct.new(:requests, :p50, :p90, :p99, :worst, keyword_init: true)

    # @!attribute fast [Latency]
    # @!attribute slow [Latency]
    # @!attribute lag [Latency] how late the generator itself was
    # @!attribute sent [Integer]
    # @!attribute failed [Integer] without an answer of status 200
    # @!attribute unanswered [Integer] at the end: in fast and slow with the age they had reached
    Result = Struct.new(:fast, :slow, :lag, :sent, :failed, :unanswered, keyword_init: true)

    # @param options [Hash] of the program, the names with underscores
    def initialize(cores: nil, **options)
      @cores = cores
      @options = options
      @program = Native.program("openload")
    end

    # @param options [Hash] more of them
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
