# frozen_string_literal: true

require "tmpdir"
require "support/load"
require "support/memory"

module Bench
  # Takes one server through the four moments at which its memory is read. Each time the load continues until every
  # worker has called all methods of the app.
  class CowRun
    PHASES = { boot: "at boot", warmed: "warmed", reforked: "after a refork", more: "and warmed again" }.freeze
    SLICES = 20 # requests after which a worker has called all methods
    SECONDS = 120 # limit for one load
    REQUESTS_AT_MOST = 20 # times the requested number

    # @!attribute label [String]
    # @!attribute phases [Hash{Symbol => Memory, nil}] nil if the server does not have that moment
    # @!attribute notes [Array<String>] what the reader should know
    Result = Struct.new(:name, :label, :phases, :notes, keyword_init: true)

    # @param name [String] the server's name on the command line
    # @param server [Server]
    # @param requests [Integer] the least number to send in each load
    def initialize(name, server, requests:)
      @name = name
      @server = server
      @requests = requests
      @result = Result.new(name: name, label: server.label, phases: {}, notes: [])
    end

    # @return [Result]
    def call
      @server.run do
        record(:boot)
        warm
        record(:warmed)
        refork
        warm
        record(:more)
      end
      @result
    end

    private

    def refork
      return @result.phases[:reforked] = nil unless @server.reforks?

      @server.refork
      record(:reforked)
    end

    def record(phase)
      @result.phases[phase] = Memory.of(@server.pids, @server.worker_pids)
    end

    def warm
      pids = @server.worker_pids
      load = Load.new(@server.port, clients: @server.capacity * 2)
      done = load.run(at_most: @requests * REQUESTS_AT_MOST, seconds: SECONDS) do |answered|
        answered.values.sum >= @requests && pids.all? { |pid| answered[pid] >= SLICES }
      end
      note(done, pids)
    end

    def note(done, pids)
      @result.notes << "#{done.failures.size} requests failed (#{done.failures.first})" if done.failures.any?
      return if done.complete

      least = pids.map { |pid| done.workers[pid] }.min
      @result.notes << "a worker got #{least} of #{done.requests} requests, too few to warm it"
    end
  end
end
