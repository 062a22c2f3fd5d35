# frozen_string_literal: true

require "socket"

# A server with known responses and delays: a thread for each connection, and the test's block for each request. It
# sends the block's return value; nil: no response.
class FakeServer
  OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

  # @!attribute peers [Array<String>] addresses of the clients so far
  attr_reader :port, :peers

  # @yieldparam request [String] head and body
  # @yieldreturn [String, nil]
  def initialize(&answer)
    @answer = answer
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @connections = Queue.new
    @peers = []
    @thread = Thread.new { accept }
  end

  def close
    @thread.kill.join
    @listener.close
    @connections.pop.kill.join until @connections.empty?
  end

  private

  def accept
    loop do
      socket = @listener.accept
      @peers << socket.remote_address.ip_address
      @connections << Thread.new { serve(socket) }
    end
  end

  def serve(socket)
    while (head = socket.gets("\r\n\r\n"))
      body = socket.read(head[/^content-length: (\d+)/i, 1].to_i) or break # the client has gone
      answer = @answer.call(head + body) or sleep
      socket.write(answer)
      break if answer.match?(/^connection: close/i)
    end
  rescue SystemCallError, IOError
    # The client has gone.
  ensure
    socket.close
  end
end
