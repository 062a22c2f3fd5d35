# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/pace"

module Pando
  module HTTP
    # The body of a request as it comes in from its client, portion by portion,
    # decoded. Nothing is received before it is asked for. Owned by a {RequestReader}.
    #
    # @api private
    class Inflow
      PORTION = 65_536
      # RFC 9110 section 10.1.1
      CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"

      # @param client [Client]
      # @param reader [RequestReader] that has read the head
      # @param limits [Limits]
      # @raise [Refused] it is larger than it may be
      def initialize(client, reader, limits)
        @client = client
        @parser = reader.parser
        @pace = Pace.new(limits.body_timeout)
        @max = limits.max_body_bytes
        @left = @parser.content_length
        refuse_if_larger(@left || 0)
        @input = reader.behind_head
        @decoder = Chunked.new if @parser.chunked?
        @invite = @parser.expect_continue? && @input.empty?
        @total = 0
        @rest = ""
      end

      # @return [String, nil] another String each time; nil at the end of the body
      # @raise [Refused] malformed, too large, too slow or cut off
      # @raise [ClientGone]
      def next
        return if @over

        @decoder ? next_decoded : next_plain
      rescue ClientTooSlow
        raise Refused.new(408, "the body did not arrive in time")
      end

      # @return [String] what was received and not given out: when all was, what came behind the body
      def rest
        @rest.empty? ? @input : @rest
      end

      # @return [Boolean] whether all of the body was given out
      def over?
        @over || @left&.zero? || false
      end

      private

      def next_plain
        return finish("") if @left.zero?

        portion = take([PORTION, @left].min)
        @rest = portion.byteslice(@left..) || ""
        portion = portion.byteslice(0, @left) unless @rest.empty?
        @left -= portion.bytesize
        portion
      end

      def next_decoded
        data = String.new(encoding: Encoding::BINARY)
        while data.empty?
          portion = take(PORTION)
          used = @decoder.decode(portion, data)
          raise Refused.new(400, @decoder.reason) if used == false

          @total += data.bytesize
          refuse_if_larger(@total + @decoder.announced)
          break finish(portion.byteslice(used..)) if used
        end
        data unless data.empty?
      end

      # What lies here already, else from the client, who is invited if he waits for it.
      def take(most)
        taken = @input
        @input = ""
        return taken unless taken.empty?

        invite
        buffer = String.new(capacity: most, encoding: Encoding::BINARY)
        raise Refused.new(400, "the request was cut off") if @client.receive(buffer, 0, most, @pace).zero?

        buffer
      end

      # A client that sends its body without waiting needs no invitation.
      def invite
        @client.inform(CONTINUE) if @invite && @client.unanswered?
        @invite = false
      end

      def finish(rest)
        @over = true
        @rest = rest unless rest.empty?
        nil
      end

      def refuse_if_larger(size)
        return unless @max && size > @max

        raise Refused.new(413, "the body is larger than max_body_bytes (#{@max}): set it higher, or to false for none")
      end
    end
  end
end
