# frozen_string_literal: true

require "pando/http/errors"

module Pando
  module HTTP
    # Where a response body goes, piece by piece. The head travels with the first
    # piece. This one is for a body that the end of the connection ends.
    #
    # @api private
    class Sink
      # @return [Client, LaneClient]
      attr_accessor :client

      # @param client [Client, LaneClient]
      # @param head [String] of the response
      def initialize(client, head)
        @client = client
        @head = head
      end

      # @param piece [String]
      # @raise [ClientGone]
      def write(piece)
        transmit(piece) unless piece.empty?
      end

      # Sends the head though no piece has come yet.
      def flush
        transmit_first if @head
      end

      # The body is complete.
      def finish
        flush
      end

      private

      def transmit(*parts)
        @head ? transmit_first(*parts) : @client.transmit(parts)
      end

      # @raise [RequestTimeout] the answer begins too late
      def transmit_first(*parts)
        @client.check_timeout
        @client.transmit([take_head, *parts])
        @client.answering
      end

      def take_head
        head = @head
        @head = nil
        head
      end
    end

    # For a body whose length the head has announced: never a byte more, and one
    # byte less is an error, for the client waits for it.
    #
    # @api private
    class SizedSink < Sink
      def initialize(client, head, length)
        super(client, head)
        @left = length
      end

      def write(piece)
        piece = piece.byteslice(0, @left) if piece.bytesize > @left
        @left -= piece.bytesize
        super
      end

      # @raise [InvalidResponse]
      def finish
        super
        raise InvalidResponse, "the body is #{@left} bytes shorter than its content-length" unless @left.zero?
      end
    end

    # The chunked transfer coding (RFC 9112 section 7.1).
    #
    # @api private
    class ChunkedSink < Sink
      def write(piece)
        transmit(Head.chunk_line(piece.bytesize), piece, "\r\n") unless piece.empty?
      end

      def finish
        parts = ["0\r\n\r\n"]
        if @head
          @client.check_timeout
          parts.unshift(take_head)
        end
        @client.transmit_last(parts)
      end
    end
  end
end
