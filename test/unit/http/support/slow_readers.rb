# frozen_string_literal: true

module HTTPSupport
  # Clients that do not read their responses, and responses that do not fit into socket buffers. For {ReactorCase}.
  module SlowReaders
    HEAD = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
    MB = 1_000_000

    private

    # The client's kernel buffers only little.
    def slow_reader(path = "/", from: "127.0.0.1")
      client = Socket.new(:INET, :STREAM)
      client.setsockopt(:SOCKET, :RCVBUF, 4096)
      client.bind(Addrinfo.tcp(from, 0))
      client.connect(@listener.local_address)
      @clients << client
      client.write("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
      client
    end

    def answer(bytes, lane: 0)
      @stage.take(lane).tap { |taken| assert_equal "ok", much(taken, bytes) }
    end

    def much(taken, bytes)
      @stage.data(taken, HEAD)
      @stage.tell("much", taken.id, bytes)
    end

    def cut?(client)
      client.read
      false
    rescue Errno::ECONNRESET
      true
    end
  end
end
