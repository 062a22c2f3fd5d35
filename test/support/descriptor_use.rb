# frozen_string_literal: true

require "fiddle"
require "socket"

module Support
  # A descriptor to use, and a use of one that Ruby does not see.
  module DescriptorUse
    # @yieldparam client [TCPSocket] @yieldparam server [TCPSocket] the two ends of a connection
    def connection
      TCPServer.open("127.0.0.1", 0) do |listener|
        TCPSocket.open("127.0.0.1", listener.local_address.ip_port) do |client|
          server = listener.accept
          yield client, server
        ensure
          server.close
        end
      end
    end

    # Past Ruby.
    def c_write(io, text = "x")
      write = Fiddle::Function.new(Fiddle.dlopen(nil)["write"],
                                   [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T], Fiddle::TYPE_SSIZE_T)
      assert_equal(text.bytesize, write.call(io.fileno, text, text.bytesize))
    end
  end
end
