# frozen_string_literal: true

require "socket"

module Conformance
  # Sends the inputs, each on its own connection and a few at the same time, and parses the responses.
  class Battery
    AT_ONCE = 16
    PATIENCE = 90 # seconds
    ANSWER = %r{\G(?:HTTP/1\.1 100 Continue\r\n\r\n)?(?:\z|HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n)}n

    # How a server read a request, or the status with which it refused it.
    Seen = Struct.new(:status, :verb, :target, :host, :body)
    class Hang < StandardError; end
    class Nonsense < StandardError; end

    # The Rack application that sends the responses. The server's own have no body, so HEAD needs no special case.
    APP = lambda do |env|
      echo = [*env.values_at("REQUEST_METHOD", "REQUEST_URI", "HTTP_HOST").map(&:to_s), env["rack.input"].read]
      [200, { "x-echo" => echo.map { |part| "x#{part.unpack1("H*")}" }.join(" "), "content-length" => "0" }, []]
    end

    # @param address [Addrinfo] of the server
    def initialize(address)
      @address = address
    end

    # @param inputs [Array<String>]
    # @return [Array<Array<Seen>>] the responses to each input
    # @raise [Hang, Nonsense]
    def run(inputs)
      inputs.each_slice(AT_ONCE).flat_map do |slice|
        sockets = slice.map { |input| send_all(@address.connect, input) }
        sockets.zip(slice).map { |socket, input| answers(read_all(socket, input), input) }
      ensure
        sockets&.each(&:close)
      end
    end

    private

    # The server may close the connection before everything is sent.
    def send_all(socket, input)
      socket.write(input)
      socket.shutdown(:WR)
      socket
    rescue Errno::EPIPE, Errno::ECONNRESET, Errno::ENOTCONN
      socket
    end

    def read_all(socket, input)
      bytes = "".b
      loop do
        raise Hang, "no end of the answer to #{input.inspect}: #{bytes.inspect}" unless socket.wait_readable(PATIENCE)

        bytes << (socket.read_nonblock(65_536, exception: false) || (return bytes))
      end
    rescue Errno::ECONNRESET
      bytes
    end

    def answers(bytes, input)
      seen = []
      at = 0
      while at < bytes.bytesize && (match = ANSWER.match(bytes, at))
        at = match.end(0)
        break unless match[1]

        seen << answer(match)
        return seen unless seen.last.status == 200
      end
      at == bytes.bytesize ? seen : raise(Nonsense, "#{bytes.byteslice(at..).inspect} to #{input.inspect}")
    end

    def answer(match)
      echo = match[2][/^x-echo: ([^\r]*)/i, 1]
      return Seen.new(match[1].to_i) unless echo

      Seen.new(200, *echo.split.map { |part| [part.delete_prefix("x")].pack("H*") })
    end
  end
end
