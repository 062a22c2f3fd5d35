# frozen_string_literal: true

require "socket"

module Support
  # TCP ports for tests that start a server in another process.
  module Ports
    # After an unused port is closed, the kernel does not assign it again for a while.
    #
    # @return [Integer] a free port of 127.0.0.1
    def free_port
      server = TCPServer.new("127.0.0.1", 0)
      server.addr[1]
    ensure
      server&.close
    end
  end
end
