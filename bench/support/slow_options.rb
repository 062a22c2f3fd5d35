# frozen_string_literal: true

require "etc"
require "support/command_line"
require "support/servers"

module Bench
  # The command line of bench/slow.
  class SlowOptions
    include CommandLine

    SERVERS = %w[pando].freeze
    WHOLE = /\A\d{1,8}\z/
    NUMBERS = {
      workers: "worker processes", slow: "slow clients", idle: "connections kept idle",
      poke: "requests on some of these", rate: "a second, of the normal client", seconds: "each measurement",
      rounds: "without and with the slow clients", large: "bytes that the slow readers ask for",
      readers: "slow readers, of the slow clients; a third if 0",
      hosts: "addresses of the slow clients, from 127.0.0.1 on", host: "the normal client asks from 127.0.0.N"
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
      @readers = 0
      @hosts = 64
      @host = 1
      read(arguments)
    end

    # @return [Hash{Symbol => Integer}] number of slow clients by kind
    def kinds
      readers = @readers.zero? ? slow / 3 : @readers.clamp(0, slow)
      bodies = (slow - readers) / 2
      { heads: slow - readers - bodies, bodies: bodies, readers: readers }
    end

    # With two CPUs, the server has the first one for itself and the clients the second.
    def cores = Etc.nprocessors > 1 ? %w[0 1] : [nil, nil]

    private

    def program = "bench/slow"

    def parser
      @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
        servers_of(options, Servers::ALL.keys)
        numbers_of(options, NUMBERS, WHOLE)
        ending(options, "figure")
      end
    end
  end
end
