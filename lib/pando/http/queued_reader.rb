# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/received_body"
require "pando/http/spool"

module Pando
  module HTTP
    # Reads requests that the reactor has received: {RequestReader}'s interface over
    # a {Lane}. The reactor has checked the head already; it is parsed once more,
    # with the same parser, for a worker believes nothing that shared memory says.
    # Owned by {ReactorHandler}; one per worker.
    #
    # @api private
    class QueuedReader
      PORTION = 65_536

      # @return [Parser]
      attr_reader :parser
      # @return [String] the request's head, and behind it its body, if that came along
      attr_reader :buffer

      # @param limits [Limits]
      # @param lane [Lane]
      def initialize(limits, lane)
        @limits = limits
        @lane = lane
        @parser = Parser.new(limits.max_header_bytes, limits.max_target_bytes, limits.max_headers)
        @buffer = String.new(capacity: 16_384, encoding: Encoding::BINARY)
      end

      # @return [Boolean] whether there was a request
      def take
        @file&.close # of a request that was refused
        @file = nil
        @lane.take(@buffer)
      end

      # @return [true]
      # @raise [Refused] what the reactor lets through is wrong
      # @raise [ClientGone]
      def read_head(client)
        read_head_from(client.receive_file) if @lane.all_in_file?
        verdict = @parser.parse(@buffer)
        raise Refused.new(verdict, @parser.reason) if verdict.is_a?(Integer)
        raise Refused.new(400, "the head has another length than announced") unless whole?(verdict)

        true
      end

      # @return [ReceivedBody, Spool, nil] nil if the request has no body
      # @raise [ClientGone]
      def read_body(client, _path)
        return read_rest_of_file if @file
        return unless @parser.body?
        return ReceivedBody.new(client.receive_file, @lane.file_size) if @lane.body_in_file?

        ReceivedBody.in_memory(@lane.body(@buffer))
      end

      # @return [Boolean] never: the reactor has all of it
      def unfinished? = false

      # @return [String] behind the request: that is the reactor's
      def rest = ""

      private

      def whole?(verdict)
        verdict && @parser.head_size == @lane.head_size
      end

      def read_head_from(file)
        @file = file
        size = @lane.head_size
        raise Refused.new(431, "the head is larger than max_header_bytes") if size > @limits.max_header_bytes

        @file.read(size, @buffer)
      end

      # Its own file, for an application may rewind it.
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
