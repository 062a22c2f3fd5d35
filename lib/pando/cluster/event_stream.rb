# frozen_string_literal: true

require "pando/cluster/control/line"
require "pando/event"
require "pando/telemetry/received_event"

module Pando
  module Cluster
    # The monitor's events, as a service receives them: a client of Control. Owned by a service, in its process.
    class EventStream
      CHUNK = 65_536

      # @param names [Array<String>] with which the names of the wanted events begin; empty: all
      # @param after [Integer] the number of the last event that the service knows; 0: none
      # @yieldparam socket [UNIXSocket] the monitor's end, which is to be sent there
      # @return [EventStream]
      def self.open(names, after:)
        ours, theirs = UNIXSocket.pair
        ours.write(Control::Line.encode("events", names: names.join(","), after: after))
        yield theirs
        new(ours)
      ensure
        theirs&.close
      end

      def initialize(socket)
        @socket = socket
        @rest = +""
      end

      def fileno = @socket.fileno
      def close = @socket.close

      # Never blocks.
      # @return [Array<Array(Integer, Event)>, nil] the events that have come, each with its number; nil in place of an
      #   event that is not wanted. nil: the monitor has closed its end
      def read
        chunk = @socket.read_nonblock(CHUNK, exception: false)
        return if chunk.nil?

        @rest << chunk unless chunk == :wait_readable
        lines = @rest.slice!(/\A.*\n/m).to_s.lines
        lines.filter_map { |line| Control::Line.decode(line)&.then { |word, pairs| event(word, pairs) } }
      rescue SystemCallError
        nil
      end

      private

      def event(word, pairs)
        pairs = Control::Line.typed(pairs)
        case word
        when "following", "passed" then [pairs["number"].to_i, nil]
        when "event" then [pairs["number"].to_i, Telemetry::ReceivedEvent.from(pairs.except("number"))]
        when "missed" then [pairs["number"].to_i, Event.new("events.missed", { count: pairs["count"] })]
        end
      end
    end
  end
end
