# frozen_string_literal: true

require "tmpdir"
require_relative "../../unit/http/support/served_queue"
require_relative "judge"
require_relative "mutations"

module Conformance
  # Sends mutated requests over real sockets to a server in this process, and compares each response with what RFC 9112
  # requires. In the reactor's mode the reactor is a separate process.
  class MutationRun
    SLICE = 500
    SETTINGS = { max_header_bytes: 65_536, max_target_bytes: 8192, max_headers: 100, max_body_bytes: nil }.freeze
    MODES = { "reactor" => [HTTPSupport::ServedQueue, nil], "direct" => [HTTPSupport::ServedWork, 1] }.freeze

    # Kinds of responses on a connection, and how often each occurred.
    attr_reader :outcomes
    # An input, and what is wrong with the responses.
    attr_reader :faults

    # @param mode ["reactor", "direct"]
    # @param seed [Integer]
    def initialize(mode, seed)
      @server, most = MODES.fetch(mode)
      @mutations = Mutations.new(seed)
      @judge = Judge.new(most: most)
      @outcomes = Hash.new(0)
      @faults = []
    end

    # @return [self]
    # @raise [RuntimeError] the server crashed or hung
    def run(count)
      with_server do |served|
        battery = Battery.new(served.listener.local_address)
        count.fdiv(SLICE).ceil.times do
          slice(battery)
          served.worker.calls.clear
        end
      end
      self
    end

    private

    def slice(battery)
      inputs = Array.new(SLICE) { @mutations.next }
      inputs.zip(battery.run(inputs)) do |input, seen|
        @outcomes[seen.map(&:status)] += 1
        fault = @judge.fault(input, seen)
        @faults << [input, fault] if fault
      end
    end

    def with_server
      Dir.mktmpdir do |folder|
        served = @server.new(Battery::APP, unix: "#{folder}/socket", **SETTINGS).start
        yield served
      ensure
        served&.stop
      end
    end
  end
end
