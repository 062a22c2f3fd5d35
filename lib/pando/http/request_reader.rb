# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/pace"
require "pando/http/spool"

module Pando
  module HTTP
    # Reads one request after another, each from its own client, into one buffer
    # that is used again. Owned by {Work}; one per worker.
    #
    # @api private
    class RequestReader
      PORTION = 16_384
      # RFC 9110 section 10.1.1
      CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"

      # @return [Parser]
      attr_reader :parser
      # @return [String] the request's head, and behind it the beginning of its body
      attr_reader :buffer

      # @param limits [Limits]
      def initialize(limits)
        @limits = limits
        @parser = Parser.new(limits.max_header_bytes, limits.max_target_bytes, limits.max_headers)
        @buffer = String.new(capacity: PORTION, encoding: Encoding::BINARY)
        @chunk = String.new(capacity: PORTION, encoding: Encoding::BINARY)
      end

      # @return [Boolean] false if the client went, or waited, without a word
      # @raise [Refused] malformed, too large, too slow or cut off
      # @raise [ClientGone]
      def read_head(client)
        @parser.reset
        @size = 0
        @rest = nil
        pace = Pace.new(@limits.header_timeout, rate: Float::INFINITY)
        nil until (complete = read_more(client, pace)) || @size.zero?
        complete || false
      rescue ClientTooSlow
        raise Refused.new(408, "the head did not arrive in time") unless @size.zero?

        false
      end

      # @return [Spool, nil] nil if the request has no body
      # @raise [Refused] malformed, too large, too slow or cut off
      # @raise [ClientGone]
      def read_body(client)
        return unless @parser.body?

        refuse_body if too_large?(@parser.content_length || 0)
        invite(client)
        @parser.chunked? ? read_chunked(client) : read_sized(client)
      rescue ClientTooSlow
        raise Refused.new(408, "the body did not arrive in time")
      end

      # @return [String] what came behind the request
      def rest
        @rest || @buffer.byteslice(@parser.head_size + (@parser.content_length || 0), @size) || ""
      end

      private

      # True when the head is complete. @size stays zero if nothing came.
      def read_more(client, pace)
        count = client.receive(@buffer, @size, PORTION, pace)
        cut_off if count.zero? && @size.positive?
        @size += count
        verdict = @parser.run(@buffer) unless @size.zero?
        raise Refused.new(verdict, @parser.reason) if verdict.is_a?(Integer)

        verdict
      end

      # A client that sends its body without waiting needs no invitation.
      def invite(client)
        client.inform(CONTINUE) if @parser.expect_continue? && @size == @parser.head_size
      end

      def read_sized(client)
        length = @parser.content_length
        spooling(length) do |spool, pace|
          spool << @buffer.byteslice(@parser.head_size, length)
          while spool.size < length
            count = client.receive(@chunk, 0, [PORTION * 4, length - spool.size].min, pace)
            cut_off if count.zero?
            spool << @chunk
          end
        end
      end

      def read_chunked(client)
        decoder = Chunked.new
        data = String.new(encoding: Encoding::BINARY)
        input = @buffer.byteslice(@parser.head_size, @size)
        spooling(0) do |spool, pace|
          until decode(decoder, input, data, spool)
            count = client.receive(@chunk, 0, PORTION * 4, pace)
            cut_off if count.zero?
            input = @chunk
          end
        end
      end

      # @return [Boolean] whether the body is complete
      def decode(decoder, input, data, spool)
        finished = decoder.decode(input, data.clear)
        raise Refused.new(400, decoder.reason) if finished == false

        refuse_body if too_large?(spool.size + data.bytesize)
        spool << data
        @rest = input.byteslice(finished..) if finished
        !finished.nil?
      end

      def spooling(expected)
        spool = Spool.new(@limits.body_memory, expected)
        yield spool, Pace.new(@limits.body_timeout)
        whole = spool
      ensure
        spool&.close unless whole
      end

      def too_large?(size)
        @limits.max_body_bytes && size > @limits.max_body_bytes
      end

      def refuse_body
        raise Refused.new(413, "the body is larger than max_body_bytes")
      end

      def cut_off
        raise Refused.new(400, "the request was cut off")
      end
    end
  end
end
