# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/response_head"

module Pando
  module HTTP
    # `env["rack.early_hints"]`: a 103 response (RFC 8297) with these fields, before the
    # answer. There where the setting `early_hints` is on and the client speaks HTTP/1.1.
    class EarlyHints
      # Bytes of all fields.
      LARGEST = 16_384

      # @param client [Client, LaneClient]
      # @api private
      def initialize(client)
        @client = client
      end

      # @param fields [#each] names with values, as those of a response
      # @return [Boolean] whether they were sent; not if the answer has begun, or nobody waits for it
      # @raise [InvalidResponse] a field would inject others, or they are too large
      def call(fields)
        return false if @client.over? || !@client.unanswered?

        text = ResponseHead.new(103, fields).interim
        raise InvalidResponse, "early hints of more than #{LARGEST} bytes" if text.bytesize > LARGEST

        @client.inform(text)
        true
      rescue ClientGone
        false
      end

      def inspect = "#<#{self.class}>"
    end
  end
end
