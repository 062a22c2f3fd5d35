# frozen_string_literal: true

module Pando
  module HTTP
    # What a streaming body (one that answers `call`, Rack 3) or a partial hijack
    # talks to: writes are the response's body, reads the request's. A partial
    # hijack may use it in a thread, and for longer than its request lasts.
    class Stream
      # @param sink [Sink]
      # @param input [#read] the request's body
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
      def closed?
        !@readable && !@writable
      end

      # The request ends here, the answer when this stream is closed.
      #
      # @param client [Client, LaneClient]
      # @raise [ClientGone]
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
