# frozen_string_literal: true

module Pando
  module HTTP
    # `rack.input` of a request whose body is read while the application runs
    # (setting `stream_bodies`): each read waits for the client. What was read is
    # gone, so there is no rewind. With the interface of {Spool}, whose place it takes.
    class StreamedBody
      # @return [Integer, nil] bytes, if the client has announced them
      attr_reader :size

      # @param inflow [Inflow]
      # @param size [Integer, nil]
      # @api private
      def initialize(inflow, size)
        @inflow = inflow
        @size = size
        @buffer = String.new(encoding: Encoding::BINARY)
      end

      # As IO#read.
      # @return [String, nil]
      # @raise [IOError] the client is gone
      # @raise [Refused] the body is malformed, too large, or comes too slowly: let it pass, it is answered
      def read(length = nil, buffer = nil)
        raise ArgumentError, "negative length #{length} given" if length&.negative?

        data = length ? take(length) : take_all
        buffer&.replace(data || "")
        data && (buffer || data)
      end

      # As IO#readpartial: what is there, or what comes next.
      # @return [String]
      # @raise [EOFError]
      def readpartial(length, buffer = nil)
        return read(0, buffer) if length.zero?
        raise EOFError, "end of file reached" if eof?

        read([length, @buffer.bytesize].min, buffer)
      end

      # @return [String, nil]
      def gets(*)
        from = 0
        until (at = @buffer.index("\n", from))
          from = @buffer.bytesize
          return @buffer.empty? ? nil : @buffer.slice!(0..) unless more
        end
        @buffer.slice!(0..at)
      end

      # @yieldparam line [String]
      # @return [self, Enumerator]
      def each
        return to_enum unless block_given?

        while (line = gets)
          yield line
        end
        self
      end

      # @return [Boolean]
      def eof? = @buffer.empty? && !more

      # @raise [Errno::ESPIPE] always
      def rewind = raise(Errno::ESPIPE, "a streamed body is read once")

      # No more of it is wanted.
      def close
        @inflow = nil
      end

      # @return [Boolean]
      def closed? = @inflow.nil?

      def binmode = self
      def external_encoding = Encoding::BINARY
      def inspect = "#<#{self.class} size=#{@size.inspect}>"

      # @api private
      def input = self

      private

      def take_all
        nil while more
        @buffer.slice!(0..)
      end

      def take(length)
        nil while @buffer.bytesize < length && more
        @buffer.slice!(0, length) unless @buffer.empty? && length.positive?
      end

      # @return [Boolean] whether there was
      def more
        raise IOError, "closed stream" unless @inflow

        portion = @inflow.next
        @buffer << portion if portion
        !portion.nil?
      end
    end
  end
end
