# frozen_string_literal: true

require "pando/http/response_head"
require "pando/http/stream"

module Pando
  module HTTP
    # Sends an application's response, as its body, the request and the status demand. The caller closes the body. Made
    # by {Connection} for responses that {.deliver} cannot send in one step.
    class Response
      # An answer of the server's own.
      #
      # @param request [Request, nil] nil if it was not understood
      def self.plain(client, request, status, fields = {})
        text = "#{status} #{StatusLine::PHRASES[status]}\n"
        new(client, request || Request::UNKNOWN, status, { "content-type" => "text/plain", **fields }, [text])
      end

      # As {#deliver}, but in one step if nothing about the answer is special, as in most.
      def self.deliver(client, request, status, fields, body)
        line = StatusLine::BEFORE_BODY[status]
        return if line && body.instance_of?(Array) && !request.head? &&
                  client.answer(line, fields, body, ResponseHead.ending(client, request))

        new(client, request, status, fields, body).deliver
      end

      # @raise [InvalidResponse] before a byte is sent
      def initialize(client, request, status, fields, body)
        @client = client
        @request = request
        @head = ResponseHead.new(status, fields)
        @body = body
      end

      # @raise [InvalidResponse] if the body turns out to be too short
      def deliver
        return deliver_upgrade if @head.interim?
        return deliver_head if @request.head? || @head.bodiless?
        unless @body.respond_to?(:each) || @body.respond_to?(:call) || @head.hijack
          raise InvalidResponse, "the body has neither each nor call"
        end

        @head.ordinary? ? deliver_ordinary : deliver_otherwise
      end

      private

      # Most bodies are arrays.
      def deliver_ordinary
        return deliver_parts(@body) if @body.instance_of?(Array)

        deliver_file || deliver_array || stream_to(sink)
      end

      def deliver_otherwise
        return @client.transmit_last([head(0)]) if @head.status == 205 # RFC 9110 section 15.3.6

        @head.hijack ? deliver_hijacked : stream_to(encoded_sink)
      end

      # RFC 9110 section 15.2.2: from here on it is not HTTP, and the application owns the connection.
      def deliver_upgrade
        talk = @head.hijack || (@body if @body.respond_to?(:call))
        unless @head.status == 101 && @request.upgrade? && talk
          raise InvalidResponse, "#{@head.status} is not a final status, and the client has asked for no upgrade"
        end

        @client.transmit([@head.complete(nil, ResponseHead::UPGRADE)])
        @client.answering
        socket = @client.take_over
        talk.call(socket)
        kept = @head.hijack
      ensure
        socket&.close unless kept
      end

      # Partial hijack: the body is what the callback writes, until it closes the stream, which
      # it may do long after it has returned. The head cannot know, and says that the connection ends.
      def deliver_hijacked
        @client.last!
        stream = Stream.new(@head.encoded? ? encoded_sink : sink, @request.input).flush
        @head.hijack.call(stream)
        stream.detach(@client)
      end

      # The whole head.
      def head(body)
        @client.last! if @head.close?
        @head.complete(body, ResponseHead.ending(@client, @request))
      end

      # RFC 9110 sections 8.6 and 9.3.2: what GET would have, or nothing; never in a 204.
      def deliver_head
        @client.transmit_last([head(@head.status == 204 ? nil : @head.length)])
      end

      # The application has chunked its body itself, which HTTP/1.0 does not know.
      def encoded_sink
        raise InvalidResponse, "transfer-encoding in a response to HTTP/1.0" if @request.minor.zero?

        Sink.new(@client, head(:encoded))
      end

      def deliver_file
        path = @body.to_path if @body.respond_to?(:to_path)
        path && File.open(path, File::RDONLY | File::BINARY | File::NONBLOCK) { |file| send_file(file) }
      rescue Errno::ENOENT, Errno::EACCES, Errno::ENXIO
        nil # the body's each may still work
      end

      # @return [Boolean] false: its size is not the announced one
      def send_file(file)
        size = file.stat.file? && file.size
        return false unless size && (@head.length.nil? || @head.length == size)

        @client.transmit([head(size)])
        @client.answering
        done = @client.transmit_file(file, size)
        raise InvalidResponse, "the file has shrunk while it was sent" if done < size

        true
      end

      def deliver_array
        deliver_parts(@body.to_ary) if @body.respond_to?(:to_ary)
      end

      def deliver_parts(parts)
        size = Wire.bytes(parts)
        if @head.length && @head.length != size
          pieces_to(SizedSink.new(@client, head(@head.length), @head.length), parts)
        else
          @client.transmit_last(parts.size == 1 ? [head(size), parts.first] : [head(size), *parts])
        end
        true
      end

      def sink
        length = @head.length
        return SizedSink.new(@client, head(length), length) if length
        return ChunkedSink.new(@client, head(:chunked)) if @request.minor.positive?

        @client.last! # it ends the body
        Sink.new(@client, head(nil))
      end

      def stream_to(sink)
        return pieces_to(sink, @body) if @body.respond_to?(:each)

        sink.flush
        stream = Stream.new(sink, @request.input)
        @body.call(stream)
        stream.close
      end

      def pieces_to(sink, pieces)
        pieces.each { |piece| sink.write(piece) }
        sink.finish
      end
    end
  end
end
