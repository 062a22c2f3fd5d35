# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/pace"
require "pando/http/request_body"
require "pando/http/streamed_body"
require "pando/native"

module Pando
  module HTTP
    # Reads one request after another, each from its own client, into one buffer that is used again: {SocketReader} from
    # a socket, {LaneReader} from the reactor's lane. This class is their contract. Each of them has
    #
    #   read_head(client)         true, or false if the client left, or said nothing
    #   read_body(client, path)   the body (see request_body.rb), nil if there is none
    #   unfinished?               whether the client may still be sending its body
    #   rest                      what the client has sent behind the request
    #
    # The first two raise {Refused} for a request that is malformed, too large, too slow or cut off, and {ClientGone}.
    # Owned by the handler, one per worker.
    class RequestReader
      attr_reader :parser
      # @return [String] the request's head, and behind it the beginning of its body, if that came along
      attr_reader :buffer

      def initialize(limits)
        @limits = limits
        @parser = Parser.new(limits.max_header_bytes, limits.max_target_bytes, limits.max_headers)
        @buffer = String.new(capacity: 16_384, encoding: Encoding::BINARY)
      end
    end

    # Reads requests from a {SocketClient}.
    class SocketReader < RequestReader
      PORTION = 16_384

      def initialize(limits)
        super
        @pace = Pace.new(limits.header_timeout, rate: Float::INFINITY)
      end

      def read_head(client)
        @parser.reset
        @size = 0
        @inflow = nil
        pace = @pace.restart
        return false if client.proxied? && !read_proxy(client, pace)

        complete = parse_head
        nil until complete || (complete = read_more(client, pace)) || @size.zero?
        complete || false
      rescue ClientTooSlow
        raise Refused.new(408, "the head did not arrive in time") unless @size.zero?

        false
      end

      def read_body(client, path)
        return unless @parser.body?

        @inflow = Inflow.new(client, self, @limits)
        @limits.streamed?(path) ? StreamedBody.new(@inflow, @parser.content_length) : spool(@inflow)
      end

      # @return [String] what came behind the head: the body's beginning, or another request's
      def behind_head
        @buffer.byteslice(@parser.head_size, @size)
      end

      def unfinished? = !@inflow.nil? && !@inflow.over?

      def rest = @inflow ? @inflow.rest : behind_head

      private

      # Reads the client's address from the header of a proxy. What follows in the buffer is the beginning of the head.
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
        use_proxy(client, *header)
      end

      def use_proxy(client, bytes, address)
        client.remote = address.empty? ? nil : address if address
        @buffer.slice!(0, bytes)
        @size = @buffer.bytesize
        true
      end

      # @return [true, nil] true: the head is complete. @size stays zero if nothing came.
      def read_more(client, pace)
        count = client.receive(@buffer, @size, PORTION, pace)
        raise Refused.new(400, "the request was cut off") if count.zero? && @size.positive?

        @size += count
        parse_head
      end

      def parse_head
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
    end

    # Reads requests that the reactor has received, from a {Lane}. The reactor has checked the head already. The same
    # parser parses it once more, because a worker does not trust shared memory.
    class LaneReader < RequestReader
      PORTION = 65_536

      def initialize(limits, lane)
        super(limits)
        @lane = lane
      end

      # @return [Boolean] whether there was a request
      def take
        @file&.close # of a request that was refused
        @file = nil
        @lane.take(@buffer)
      end

      def read_head(client)
        read_head_from(client.receive_file) if @lane.all_in_file?
        verdict = @parser.parse(@buffer)
        raise Refused.new(verdict, @parser.reason) if verdict.is_a?(Integer)
        raise Refused.new(400, "the head has another length than announced") unless
          verdict && @parser.head_size == @lane.head_size

        true
      end

      def read_body(client, _path)
        return read_rest_of_file if @file
        return unless @parser.body?
        return ReceivedBody.new(client.receive_file, @lane.file_size) if @lane.body_in_file?

        ReceivedBody.in_memory(@lane.body(@buffer))
      end

      # @return [false] the reactor has all of it
      def unfinished? = false

      # @return [String] the reactor keeps what comes behind a request
      def rest = ""

      private

      def read_head_from(file)
        @file = file
        size = @lane.head_size
        raise Refused.new(431, "the head is larger than max_header_bytes") if size > @limits.max_header_bytes

        @file.read(size, @buffer)
      end

      # Into a file of its own, because an application may rewind it.
      def read_rest_of_file
        return unless @parser.body?

        spool = Spool.new(@limits.body_memory, @lane.file_size - @lane.head_size, @limits.spool)
        while (portion = @file.read(PORTION))
          spool << portion
        end
        spool
      ensure
        @file.close
      end
    end
  end
end
