# frozen_string_literal: true

require "support/lab/client"
require "support/memory"

module Bench
  module Lab
    # The load of one server, in slices, and a reading of memory and CPU time after each, when no request is under way.
    # What the server takes while others have their turn counts, for it may be work that its requests have caused. It is
    # also added up apart.
    class Slices
      # The server does not serve any more.
      class Gone < StandardError; end

      MANY = 20 # requests of a slice; if all of them fail, the server is gone

      # @return [Array<Hash>] requests: sent so far, at: seconds of the monotonic clock, cpu: seconds so far,
      #   generation:, and the figures of Memory
      attr_reader :samples

      # @return [Hash] cpu: and seconds: of the others' turns
      attr_reader :idle

      # @param client [Client]
      # @param watch [Watch]
      # @param group [Group, Ledger]
      # @param size [Integer] requests in a slice
      def initialize(client, watch:, group:, size:, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
        @client = client
        @watch = watch
        @group = group
        @size = size
        @clock = clock
        @samples = []
        @busy = { cpu: 0.0, seconds: 0.0 }
        @idle = { cpu: 0.0, seconds: 0.0 }
      end

      # @param total [Integer] requests
      # @param pause [#call] called between two slices for the others' turns; returns true to end the load
      # @raise [Gone]
      # @return [void]
      def run(total, pause)
        sample
        while (left = total - @client.sent.size).positive?
          break if counted(@idle) { pause.call }

          counted(@busy) { send_some([@size, left].min) }
          sample
        end
      end

      private

      def send_some(count)
        before = @client.failures.size
        @client.run(count)
        gone if count >= MANY && @client.failures.size - before == count
      rescue Client::Stuck
        gone
      end

      def gone
        raise Gone, "it does not serve any more, after #{@client.sent.size} requests (#{@client.failures.last})"
      end

      def sample
        sight = @watch.look
        processes = sight.workers + sight.others
        gone if processes.empty?

        @samples << { requests: @client.sent.size, at: @clock.call, cpu: @busy[:cpu] + @idle[:cpu],
                      generation: sight.generations.max, **Memory.of(processes, sight.workers).to_h }
      end

      def counted(sums)
        cpu = cpu_time
        at = @clock.call
        yield.tap do
          sums[:cpu] += cpu_time - cpu
          sums[:seconds] += @clock.call - at
        end
      end

      # The watch reads the processes, from which a Ledger knows the CPU time.
      def cpu_time = @watch.look && @group.cpu
    end
  end
end
