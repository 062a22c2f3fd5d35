# frozen_string_literal: true

require "socket"

module Support
  # A client's keep-alive connection, with one request after another.
  #
  #     connection = KeptConnection.new(server.connect)
  #     connection.ask("/").answer.status # => 200
  #     connection.ended?                 # => false
  class KeptConnection
    Answer = Struct.new(:status, :head, :body) do
      def last? = head.match?(/^connection: close\r$/i)
    end
    PATIENCE = 90 # seconds

    attr_reader :socket

    def initialize(socket)
      @socket = socket
    end

    # @return [self]
    def ask(path, verb: "GET", fields: "", body: "")
      @socket.write("#{verb} #{path} HTTP/1.1\r\nHost: localhost\r\n#{fields}\r\n#{body}")
      self
    end

    # @return [Answer]
    # @raise [EOFError] the connection ended before or during the response
    def answer
      wait
      head = @socket.gets("\r\n\r\n")
      raise EOFError, "no whole head: #{head.inspect}" unless head&.end_with?("\r\n\r\n")

      length = head[/^content-length: (\d+)\r$/i, 1].to_i
      body = length.zero? ? "" : @socket.read(length)
      raise EOFError, "#{body.to_s.bytesize} of #{length} bytes" unless body&.bytesize == length

      Answer.new(head[%r{\AHTTP/1\.1 (\d{3}) }, 1].to_i, head, body)
    end

    # Waits for the end of the connection, or for an unexpected byte.
    #
    # @return [Boolean] whether the server has closed it properly
    def ended?
      wait
      @socket.read(1).nil?
    end

    # Waits until it ends, in whatever way.
    #
    # @return [String] the bytes before the end
    def rest
      bytes = +""
      loop do
        wait
        bytes << @socket.readpartial(65_536)
      end
    rescue EOFError, Errno::ECONNRESET
      bytes
    end

    # @return [Boolean] whether nothing has arrived
    def silent? = !@socket.wait_readable(0)

    def close = @socket.close

    private

    def wait = @socket.wait_readable(PATIENCE) || raise("nothing within #{PATIENCE} s")
  end
end
