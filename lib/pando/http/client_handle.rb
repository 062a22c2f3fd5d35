# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/response_head"

module Pando
  module HTTP
    # `env["pando.client"]`, and what `rack.hijack` calls: the client of one request. The application can ask whether it
    # still waits, and take its connection over.
    #
    #     return if !env["pando.client"].connected?   # the report is not needed any more
    #
    # @api public
    class ClientHandle
      # @param client [Client]
      # @param env [Hash]
      # @api private
      def initialize(client, env)
        @client = client
        @env = env
      end

      # Whether the client waits for the answer, as far as the kernel knows: that a client has closed its socket shows
      # when it replies to the answer with a reset.
      #
      # @return [Boolean] false too when the request is over
      def connected? = @client.connected?

      # Whether the client sends no more. It may still wait for its answer (RFC 9112 section 9.6), though most such
      # clients have gone.
      #
      # @return [Boolean]
      def half_closed? = @client.half_closed?

      # Full hijack, as in the Rack specification: the connection is the application's, and the response that it returns
      # is ignored. A second call returns the same socket.
      #
      # @return [TCPSocket, UNIXSocket]
      # @raise [IOError] the response has begun, or the request is over
      # @raise [ClientGone] (an IOError)
      def call
        @env["rack.hijack_io"] = @socket = @client.hijack unless @socket
        @socket
      end

      # For logs of the environment: without the objects that it refers to.
      def inspect = "#<#{self.class} connected=#{connected?}>"
    end

    # `env["rack.early_hints"]`: sends a 103 response (RFC 8297) with these fields before the answer. It exists if the
    # setting `early_hints` is on and the client speaks HTTP/1.1.
    #
    # @api public
    class EarlyHints
      # Bytes of all fields.
      LARGEST = 16_384

      # @param client [Client]
      # @api private
      def initialize(client)
        @client = client
      end

      # @param fields [#each] names with values, as those of a response
      # @return [Boolean] whether they were sent; false: the answer has begun, or the client is gone
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
