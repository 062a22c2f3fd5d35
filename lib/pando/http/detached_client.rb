# frozen_string_literal: true

require "pando/http/client"

module Pando
  module HTTP
    # The client of an answer that has outlived its request: a partial hijack whose
    # callback has returned. Owned by the {Stream} that the application holds, and
    # used in the application's threads; the worker serves others meanwhile.
    #
    # @api private
    class DetachedClient < Client
      # @param socket [BasicSocket] closed with this client, or when nobody holds it any more
      # @param write_timeout [Float] seconds
      def initialize(socket, write_timeout)
        super(socket.fileno, write_timeout)
        @socket = socket
      end

      private

      def close(_descriptor)
        @socket.close
      end

      def abort(_descriptor)
        @socket.setsockopt(Socket::Option.linger(true, 0))
      ensure
        @socket.close
      end
    end
  end
end
