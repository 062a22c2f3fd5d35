# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/inflow"
require "pando/http/pace"
require "pando/http/spool"
require "pando/http/streamed_body"

module Pando
  module HTTP
    # Reads one request after another, each from its own client, into one buffer
    # that is used again. Owned by {DirectHandler}; one per worker.
    #
    # @api private
    class RequestReader
      PORTION = 16_384

      # @return [Parser]
      attr_reader :parser
      # @return [String] the request's head, and behind it the beginning of its body
      attr_reader :buffer

      # @param limits [Limits]
      def initialize(limits)
        @limits = limits
        @parser = Parser.new(limits.max_header_bytes, limits.max_target_bytes, limits.max_headers)
        @buffer = String.new(capacity: PORTION, encoding: Encoding::BINARY)
        @pace = Pace.new(limits.header_timeout, rate: Float::INFINITY)
      end

      # @return [Boolean] false if the client went, or waited, without a word
      # @raise [Refused] malformed, too large, too slow or cut off
      # @raise [ClientGone]
      def read_head(client)
        @parser.reset
        @size = 0
        @inflow = nil
        pace = @pace.restart
        return false if client.proxied? && !read_proxy(client, pace)

        complete = look_at_head
        nil until complete || (complete = read_more(client, pace)) || @size.zero?
        complete || false
      rescue ClientTooSlow
        raise Refused.new(408, "the head did not arrive in time") unless @size.zero?

        false
      end

      # @param path [String] of the request
      # @return [Spool, StreamedBody, nil] nil if the request has no body
      # @raise [Refused] malformed, too large, too slow or cut off
      # @raise [ClientGone]
      def read_body(client, path)
        return unless @parser.body?

        @inflow = Inflow.new(client, self, @limits)
        @limits.streamed?(path) ? StreamedBody.new(@inflow, @parser.content_length) : spool(@inflow)
      end

      # @return [String] what came behind the head, of whatever it is the beginning
      def behind_head
        @buffer.byteslice(@parser.head_size, @size)
      end

      # @return [Boolean] whether the client may still be sending its body
      def unfinished?
        !@inflow.nil? && !@inflow.over?
      end

      # @return [String] what came behind the request
      def rest
        @inflow ? @inflow.rest : behind_head
      end

      private

      # Who the client is, by the word of a proxy; what follows in the buffer is the beginning of the head.
      #
      # @return [Boolean] false if the proxy went without a whole word
      # @raise [NoProxy]
      def read_proxy(client, pace)
        size = 0
        header = nil
        until header
          count = client.receive(@buffer, size, PORTION, pace)
          return false if count.zero?

          size += count
          header = Proxy.parse(@buffer)
          raise NoProxy, "the connection does not open with a PROXY header" if header == false
        end
        introduce(client, *header)
      end

      def introduce(client, bytes, address)
        client.remote = address.empty? ? nil : address if address
        @buffer.slice!(0, bytes)
        @size = @buffer.bytesize
        true
      end

      # True when the head is complete. @size stays zero if nothing came.
      def read_more(client, pace)
        count = client.receive(@buffer, @size, PORTION, pace)
        cut_off if count.zero? && @size.positive?
        @size += count
        look_at_head
      end

      def look_at_head
        verdict = @parser.run(@buffer) unless @size.zero?
        raise Refused.new(verdict, @parser.reason) if verdict.is_a?(Integer)

        verdict
      end

      def spool(inflow)
        spool = Spool.new(@limits.body_memory, @parser.content_length || 0, @limits.spool)
        while (portion = inflow.next)
          spool << portion
        end
        whole = spool
      ensure
        spool&.close unless whole
      end

      def cut_off
        raise Refused.new(400, "the request was cut off")
      end
    end
  end
end
