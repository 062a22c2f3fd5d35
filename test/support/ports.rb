# frozen_string_literal: true

require "socket"

module Support
  # TCP ports for tests that start a server in another process.
  module Ports
    # The kernel does not hand out a port again for a while after it closed unused.
    #
    # @return [Integer] a port of 127.0.0.1 that nobody listens on
    def free_port
      server = TCPServer.new("127.0.0.1", 0)
      server.addr[1]
    ensure
      server&.close
    end
  end
end
