# frozen_string_literal: true

module Pando
  module HTTP
    # What a streaming body (one that answers `call`, Rack 3) talks to: writes are
    # the response's body, reads the request's.
    class Stream
      # @param sink [Sink]
      # @param input [#read] the request's body
      # @api private
      def initialize(sink, input)
        @sink = sink
        @input = input
        @readable = true
        @writable = true
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
        raise IOError, "not opened for writing" unless @writable

        pieces.sum do |piece|
          piece = piece.to_s
          @sink.write(piece)
          piece.bytesize
        end
      end

      # @return [self]
      def <<(piece)
        write(piece)
        self
      end

      # @return [self]
      def flush
        @sink.flush if @writable
        self
      end

      def close_read
        @readable = false
        nil
      end

      # Ends the response's body.
      def close_write
        return unless @writable

        @writable = false
        @sink.finish
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
    end
  end
end
