# frozen_string_literal: true

require "chaos/load/exchange"
require "chaos/load/wire"

module Chaos
  module Load
    # A client on a thread: it sends one request after another, some on a kept connection, some pipelined.
    class Client
      # Out of 100 requests.
      MIX = { "get" => 30, "post" => 24, "chunked" => 10, "stream" => 8, "large" => 8, "slow-app" => 4, "upload" => 4,
              "slow-post" => 3, "slow-head" => 3, "slow-reader" => 3, "slow-stream" => 3 }.freeze
      KINDS = MIX.flat_map { |kind, share| [kind] * share }.freeze
      # Of all requests, if some paths have a pool of their own.
      APART = 0.35
      # Seconds between two requests.
      PAUSE = 0.06
      # The most bytes of bodies to pipeline. A client that sends more than a socket can hold without reading the
      # responses deadlocks with a server that waits for it.
      AHEAD = 64 * 1024

      # @param connect [Array<#call>] return new sockets
      # @param number [#call] returns the next request's number
      # @param report [#call] gets each exchange
      # @param depth [Integer] requests that are pipelined from time to time
      # @param apart [String, nil] path of the pool for some paths
      def initialize(connect, random, number, report, depth, apart = nil)
        @connect = connect
        @random = random
        @number = number
        @report = report
        @depth = depth
        @apart = apart
      end

      # @yieldreturn [Boolean] whether to stop
      def run
        until yield
          exchanges = Array.new(pipelined) { Exchange.new(@number.call, KINDS.sample(random: @random), @random, place) }
          exchanges = exchanges.first(1) unless sent_ahead?(exchanges)
          perform(exchanges)
          sleep @random.rand * 2 * PAUSE
        end
      ensure
        @wire&.close
      end

      private

      def place = (@apart if @apart && @random.rand < APART)
      def pipelined = @random.rand < 0.15 ? @depth : 1

      def sent_ahead?(exchanges)
        exchanges.all? { |one| one.kind.match?(/\A(get|large|post)\z/) } && exchanges.sum(&:body_bytes) <= AHEAD
      end

      def perform(exchanges)
        hang_up if @wire&.ended?
        exchanges.each(&:began!)
        wire = @wire ||= Wire.new(@connect.sample(random: @random).call)
        kept = exchanges.size == 1 ? exchanges.first.run(wire) : run_pipelined(exchanges, wire)
        hang_up if !kept || @random.rand < 0.1
      rescue SystemCallError => e
        exchanges.each { |one| one.conclude(:unconnected, e.message) }
        hang_up
        sleep 0.2
      ensure
        exchanges.each { |one| @report.call(one) if one.outcome }
      end

      # Responses come in order. Requests after the last response of a connection did not run.
      def run_pipelined(exchanges, wire)
        exchanges.each { |one| one.send_all(wire) }
        kept = true
        exchanges.each { |one| kept ? kept = one.receive(wire) : one.conclude(:untaken) }
        kept
      end

      def hang_up
        @wire&.close
        @wire = nil
      end
    end
  end
end
