# frozen_string_literal: true

require "socket"

module Chaos
  module Load
    # A client's connection: sends bytes and reads responses within one deadline.
    class Wire
      # A complete response.
      Answer = Struct.new(:status, :fields, :body) do
        def kept? = fields["connection"] != "close"
      end
      # The client's timeout expired.
      class Silence < StandardError; end

      # The connection ended; `begun`: in the middle of a response.
      class Ended < StandardError
        attr_reader :begun

        def initialize(message, begun)
          super(message)
          @begun = begun
        end
      end

      # The bytes are not a response.
      class Nonsense < StandardError; end

      PATIENCE = 60 # seconds that one exchange may take

      def initialize(socket)
        @socket = socket
        @buffer = +""
        renew
      end

      def renew = @deadline = Chaos.now + PATIENCE

      # A server that has responded already may stop reading; then the response counts.
      # @return [Boolean] whether everything was sent
      def write(bytes)
        until bytes.empty?
          written = @socket.write_nonblock(bytes, exception: false)
          if written == :wait_writable
            # Like most clients, it does not read an early response before everything is sent.
            @socket.wait_writable(left) || raise(Silence, "nothing was taken")
          else
            bytes = bytes.byteslice(written..)
          end
        end
        true
      rescue SystemCallError
        false
      end

      # @param slowly [Float] seconds between two reads
      # @return [Answer]
      def answer(slowly: 0, size: 65_536)
        head = take_until("\r\n\r\n", begun: false)
        status, fields = parse(head)
        return answer(slowly: slowly, size: size) if status < 200

        Answer.new(status, fields, body(fields, slowly, size))
      end

      # The server may close a connection between two requests.
      def ended?
        @socket.read_nonblock(1, exception: false) != :wait_readable
      rescue SystemCallError
        true
      end

      def close = @socket.close

      private

      def left = [@deadline - Chaos.now, 0].max

      def parse(head)
        line, *fields = head.split("\r\n")
        status = line.to_s[%r{\AHTTP/1\.1 (\d{3}) }, 1] or raise Nonsense, line.inspect[0, 200]
        [status.to_i, fields.to_h { |field| field.split(/:\s*/, 2).then { |name, value| [name.downcase, value] } }]
      end

      def body(fields, slowly, size)
        return chunked(slowly, size) if fields["transfer-encoding"] == "chunked"

        take(Integer(fields.fetch("content-length") { raise Nonsense, "a body of no known length" }), slowly, size)
      end

      def chunked(slowly, size)
        body = +""
        loop do
          bytes = Integer(take_until("\r\n"), 16)
          body << take(bytes, slowly, size)
          raise Nonsense, "a chunk that does not end" unless take(2) == "\r\n"
          return body if bytes.zero?
        end
      rescue ArgumentError
        raise Nonsense, "a chunk without a size"
      end

      def take_until(mark, begun: true)
        fill(begun || !@buffer.empty?) until (place = @buffer.index(mark))
        @buffer.slice!(0, place + mark.bytesize).delete_suffix(mark)
      end

      def take(bytes, slowly = 0, size = 65_536)
        while @buffer.bytesize < bytes
          sleep slowly if slowly.positive?
          fill(true, size)
        end
        @buffer.slice!(0, bytes)
      end

      def fill(begun, size = 65_536)
        @socket.wait_readable(left) || raise(Silence, begun ? "half an answer" : "no answer")
        part = @socket.read_nonblock(size, exception: false)
        return if part == :wait_readable
        raise Ended.new("closed", begun) if part.nil?

        @buffer << part
      rescue SystemCallError => e
        raise Ended.new(e.class.name.split("::").last, begun)
      end
    end
  end
end
