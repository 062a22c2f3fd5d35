# frozen_string_literal: true

module Pando
  module HTTP
    # `env["pando.client"]`, and what `rack.hijack` calls: the client of one request,
    # for the application to ask after and to take over.
    #
    #     return if !env["pando.client"].connected?   # nobody waits for the report
    class ClientHandle
      # @param client [Client, LaneClient]
      # @param env [Hash]
      # @api private
      def initialize(client, env)
        @client = client
        @env = env
      end

      # Whether somebody waits for the answer, as far as the kernel knows: a client that
      # closed its socket is noticed when it answers what we send it with a reset.
      #
      # @return [Boolean] false too when the request is over
      def connected?
        @client.connected?
      end

      # Whether the client sends no more. It may still wait for its answer (RFC 9112
      # section 9.6), though most that do this have gone.
      #
      # @return [Boolean]
      def half_closed?
        @client.half_closed?
      end

      # Full hijack, as the Rack specification has it: the connection is the application's,
      # and what it returns is ignored. Once taken, the same is returned again.
      #
      # @return [TCPSocket, UNIXSocket]
      # @raise [IOError] the response has begun, or the request is over
      # @raise [ClientGone] (an IOError)
      def call
        @env["rack.hijack_io"] = @socket = @client.hijack unless @socket
        @socket
      end

      # For logs of the environment: without all that hangs on it.
      def inspect = "#<#{self.class} connected=#{connected?}>"
    end
  end
end
