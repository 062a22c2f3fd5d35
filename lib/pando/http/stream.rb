# frozen_string_literal: true

require "pando/http/errors"
require "pando/native"

module Pando
  module HTTP
    # Sends a response body piece by piece. The head travels with the first piece. This class is for a body that the end
    # of the connection ends. Owned by a {Response} or a {Stream}.
    class Sink
      attr_accessor :client

      def initialize(client, head)
        @client = client
        @head = head
      end

      def write(piece)
        transmit(piece) unless piece.empty?
      end

      # Sends the head though no piece has come yet.
      def flush
        transmit_first if @head
      end

      # The body is complete.
      def finish = flush

      private

      def transmit(*parts)
        @head ? transmit_first(*parts) : @client.transmit(parts)
      end

      # @raise [RequestTimeout] the answer begins too late
      def transmit_first(*parts)
        @client.check_timeout
        @client.transmit([take_head, *parts])
        @client.answering
      end

      def take_head
        head = @head
        @head = nil
        head
      end
    end

    # For a body whose length the head has announced: bytes beyond it are dropped, and a missing one is an error,
    # because the client waits for it.
    class SizedSink < Sink
      def initialize(client, head, length)
        super(client, head)
        @left = length
      end

      def write(piece)
        piece = piece.byteslice(0, @left) if piece.bytesize > @left
        @left -= piece.bytesize
        super
      end

      # @raise [InvalidResponse]
      def finish
        super
        raise InvalidResponse, "the body is #{@left} bytes shorter than its content-length" unless @left.zero?
      end
    end

    # The chunked transfer coding (RFC 9112 section 7.1).
    class ChunkedSink < Sink
      def write(piece)
        transmit(Head.chunk_line(piece.bytesize), piece, "\r\n") unless piece.empty?
      end

      def finish
        parts = ["0\r\n\r\n"]
        if @head
          @client.check_timeout
          parts.unshift(take_head)
        end
        @client.transmit_last(parts)
      end
    end

    # The stream that a streaming body (one that answers `call`, Rack 3) or a partial hijack gets: writes are the
    # response's body, reads the request's. A partial hijack may use it in a thread, and for longer than its request
    # lasts.
    #
    # @api public
    class Stream
      # @api private
      def initialize(sink, input)
        @sink = sink
        @input = input
        @readable = true
        @writable = true
        @lock = Mutex.new # a thread writes while the request ends
      end

      # As IO#read.
      # @return [String, nil]
      def read(length = nil, buffer = nil)
        raise IOError, "not opened for reading" unless @readable

        buffer ? @input.read(length, buffer) : @input.read(length)
      end

      # As IO#write.
      # @return [Integer] bytes
      # @raise [IOError] if the client is gone
      def write(*pieces)
        @lock.synchronize do
          raise IOError, "not opened for writing" unless @writable

          pieces.sum do |piece|
            piece = piece.to_s
            @sink.write(piece)
            piece.bytesize
          end
        end
      end

      # As IO#readpartial: what is there of the request's body, at most so many bytes. Waits
      # only if the body is streamed in.
      # @return [String]
      # @raise [EOFError]
      def readpartial(length, buffer = nil)
        return read(length, buffer) || raise(EOFError, "end of file reached") unless @input.respond_to?(:readpartial)
        raise IOError, "not opened for reading" unless @readable

        buffer ? @input.readpartial(length, buffer) : @input.readpartial(length)
      end

      # As {#readpartial}, for Rack 2 asks for it.
      # @return [String, nil] nil at the end if exception is false
      # @raise [EOFError]
      def read_nonblock(length, buffer = nil, exception: true)
        readpartial(length, buffer)
      rescue EOFError
        raise if exception
      end

      # As {#write}: if it must, it waits for the client to take what was written before.
      # @return [Integer] bytes
      # @raise [IOError] if the client is gone
      def write_nonblock(piece, exception: true) # rubocop:disable Lint/UnusedMethodArgument
        write(piece)
      end

      # @return [self]
      def <<(piece)
        write(piece)
        self
      end

      # @return [self]
      def flush
        @lock.synchronize { @sink.flush if @writable }
        self
      end

      def close_read
        @readable = false
        nil
      end

      # Ends the response's body.
      def close_write
        @lock.synchronize { finish if @writable }
        nil
      end

      def close
        close_read
        close_write
      end

      # @return [Boolean]
      def closed? = !@readable && !@writable

      # The request ends here, the answer when this stream is closed.
      #
      # @api private
      def detach(client)
        @lock.synchronize { @sink.client = @detached = client.detach if @writable }
      end

      private

      def finish
        @writable = false
        @sink.finish
        @detached&.finish(+"", false)
      rescue StandardError
        @detached&.reset
        raise
      end
    end
  end
end
