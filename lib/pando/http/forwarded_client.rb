# frozen_string_literal: true

require "pando/http/client"
require "pando/http/queue_time"

module Pando
  module HTTP
    # A client that the reactor has handed over when it had the head of the request,
    # for the body is to be streamed: from there on as in direct mode. Owned by a
    # {Connection}.
    #
    # @api private
    class ForwardedClient < Client
      # @param descriptor [Integer] @param write_timeout [Float] seconds
      # @param received [String] all that was received, the head first
      # @param lane [Lane] that has taken the request
      # @param origin [LaneClient] who has taken the descriptor
      def initialize(descriptor, write_timeout, received, lane, origin)
        super(descriptor, write_timeout, lane.remote)
        @received = received
        @queue_time = lane.queue_time
        @retry = lane.retry?
        @origin = origin
      end

      # @param env [Hash] @param reader [RequestReader]
      def introduce(env, reader)
        super
        env["pando.queue_time"] = QueueTime.of(env, @queue_time)
        env["pando.retry"] = true if @retry
      end

      # @return [Integer] as {Client#receive}, of what was received before first
      def receive(buffer, offset, max, pace)
        return super if @received.empty?

        taken = @received.slice!(0, max)
        buffer.replace(buffer.byteslice(0, offset) << taken)
        taken.bytesize
      end

      # @return [false] the reactor may have the socket too, so that no end would follow at once
      def answer(*) = false

      # @see Client#transmit
      def transmit(parts)
        part_from_reactor
        super
      end

      alias transmit_last transmit

      # @see Client#transmit_file
      def transmit_file(file, size)
        part_from_reactor
        super
      end

      private

      # Once, before the first byte of the answer: until then the reactor would answer if this worker died.
      def part_from_reactor
        @origin&.let_go
        @origin = nil
      end

      def release
        part_from_reactor
        super
      end
    end
  end
end
