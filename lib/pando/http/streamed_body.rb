# frozen_string_literal: true

require "pando/http/errors"
require "pando/http/pace"
require "pando/native"

module Pando
  module HTTP
    # `rack.input` of a request whose body is read while the application runs (setting `stream_bodies`): each read waits
    # for the client. It cannot be rewound.
    #
    # @api public
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
      # @raise [Refused] the body is malformed, too large, or comes too slowly: do not rescue it, the server answers
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

      # The rest is not read.
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

      # @return [Boolean] whether there was more
      def more
        raise IOError, "closed stream" unless @inflow

        portion = @inflow.next
        @buffer << portion if portion
        !portion.nil?
      end
    end

    # The body of a request as its client sends it, portion by portion, decoded. It receives nothing before it is asked.
    # Owned by a {SocketReader}.
    class Inflow
      PORTION = 65_536
      # RFC 9110 section 10.1.1
      CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"

      def initialize(client, reader, limits)
        @client = client
        @parser = reader.parser
        @pace = Pace.new(limits.body_timeout)
        @max = limits.max_body_bytes
        @left = @parser.content_length
        refuse_if_larger(@left || 0)
        @input = reader.behind_head
        @decoder = Chunked.new if @parser.chunked?
        @invite = @parser.expect_continue? && @input.empty?
        @total = 0
        @rest = ""
      end

      # @return [String, nil] another String each time; nil at the end of the body
      def next
        return if @over

        @decoder ? next_decoded : next_plain
      rescue ClientTooSlow
        raise Refused.new(408, "the body did not arrive in time")
      end

      # @return [String] what was received and not returned by {#next}; at the end of the body, what came behind it
      def rest = @rest.empty? ? @input : @rest

      # @return [Boolean] whether {#next} has returned all of the body
      def over? = @over || @left&.zero? || false

      private

      def next_plain
        return finish("") if @left.zero?

        portion = take([PORTION, @left].min)
        @rest = portion.byteslice(@left..) || ""
        portion = portion.byteslice(0, @left) unless @rest.empty?
        @left -= portion.bytesize
        portion
      end

      def next_decoded
        data = String.new(encoding: Encoding::BINARY)
        while data.empty?
          portion = take(PORTION)
          used = @decoder.decode(portion, data)
          raise Refused.new(400, @decoder.reason) if used == false

          @total += data.bytesize
          refuse_if_larger(@total + @decoder.announced)
          break finish(portion.byteslice(used..)) if used
        end
        data unless data.empty?
      end

      # Takes what was received already, else receives from the client, which is invited first if it waits for that.
      def take(most)
        taken = @input
        @input = ""
        return taken unless taken.empty?

        invite
        buffer = String.new(capacity: most, encoding: Encoding::BINARY)
        raise Refused.new(400, "the request was cut off") if @client.receive(buffer, 0, most, @pace).zero?

        buffer
      end

      # A client that sends its body without waiting needs no invitation.
      def invite
        @client.inform(CONTINUE) if @invite && @client.unanswered?
        @invite = false
      end

      def finish(rest)
        @over = true
        @rest = rest unless rest.empty?
        nil
      end

      def refuse_if_larger(size)
        return unless @max && size > @max

        raise Refused.new(413, "the body is larger than max_body_bytes (#{@max}): set it higher, or to false for none")
      end
    end
  end
end
