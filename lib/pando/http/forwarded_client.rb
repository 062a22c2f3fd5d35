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
      def initialize(descriptor, write_timeout, received, lane)
        super(descriptor, write_timeout, lane.remote)
        @received = received
        @queue_time = lane.queue_time
        @retry = lane.retry?
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
    end
  end
end
