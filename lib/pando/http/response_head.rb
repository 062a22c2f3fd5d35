# frozen_string_literal: true

require "pando/http/environment"
require "pando/http/errors"
require "pando/http/status_line"

module Pando
  module HTTP
    # The head of a response as the application wants it: checked, and without
    # the fields that say where the body ends, which {#complete} writes.
    #
    # Field names and values that could end their line early are refused, so that
    # no data of the application becomes a field (RFC 9110 section 5.5).
    #
    # @api private
    class ResponseHead
      FINAL = (200..999)
      # Not an answer to the request, or not in HTTP: 101 Switching Protocols, 103 Early Hints.
      INTERIM = [101, 103].freeze
      # RFC 9110 sections 15.3.5 and 15.4.5. Not 205: it says that its body is empty.
      BODILESS = [204, 304].freeze
      LINES = "the value of %s holds a line feed; several values are an Array in Rack 3"
      private_constant :FINAL, :INTERIM, :BODILESS, :LINES

      # What becomes of the connection (RFC 9112 section 9.3), and the end of the head.
      CLOSE = "connection: close\r\n\r\n"
      KEEP = "\r\n"
      KEEP_1_0 = "connection: keep-alive\r\n\r\n"
      UPGRADE = "connection: upgrade\r\n\r\n"

      # The end of a head, with what becomes of the connection (RFC 9112 sections 9.3 and 9.6, appendix C.2.2).
      #
      # @param client [Client, LaneClient] @param request [Request]
      # @return [String]
      def self.ending(client, request)
        return CLOSE unless client.persistent?

        request.minor.zero? ? KEEP_1_0 : KEEP
      end

      # @return [Integer]
      attr_reader :status
      # @return [Integer, nil] the Content-Length that the application gave
      attr_reader :length
      # @return [#call, nil] what the response field `rack.hijack` holds
      attr_reader :hijack

      # @param status [Integer, String]
      # @param fields [#each] names with a String, or an Array of them
      # @raise [InvalidResponse]
      def initialize(status, fields)
        @status = status.is_a?(Integer) ? status : Integer(status, exception: false)
        unless FINAL.cover?(@status) || interim?
          raise InvalidResponse, "the status #{status.inspect} is no final status"
        end

        @length = @encoding = @hijack = nil
        @dated = @close = false
        @lines = Head.lines(fields, self)
      end

      # @return [Boolean] whether this is no final status
      def interim?
        INTERIM.include?(@status)
      end

      # @return [Boolean] whether this status never has a body
      def bodiless?
        BODILESS.include?(@status)
      end

      # @return [Boolean] whether nothing but the body's own kind says how it is to be sent
      def ordinary?
        @encoding.nil? && @hijack.nil? && @status != 205
      end

      # @return [Boolean] whether the application has encoded the body itself
      def encoded?
        !@encoding.nil?
      end

      # @return [Boolean] whether the application wants the connection closed
      def close?
        @close
      end

      # @return [String] the whole head of an interim response
      def interim
        Head.complete(StatusLine.for(@status), @lines, nil, KEEP, true)
      end

      # Writes what ends a head.
      #
      # @param body [Integer, :chunked, :encoded, nil] bytes of the body, or how it is
      #   delimited; nil if by the end of the connection, or by having none
      # @param persistence [String] {CLOSE}, {KEEP} or {KEEP_1_0}
      # @return [String] the whole head
      def complete(body, persistence = CLOSE)
        Head.complete(StatusLine.for(@status), @lines, delimiter(body), persistence, @dated)
      end

      private

      # @return [Integer, String, nil] the body's length, or a line
      def delimiter(body)
        case body
        when :chunked then "transfer-encoding: chunked\r\n"
        when :encoded then line("transfer-encoding", @encoding)
        else body
        end
      end

      # Called by Head.lines for each field that is more than a String that means nothing to the server.
      #
      # @return [String, nil] what it comes to in the head
      def add(name, value)
        name = name.to_s
        case kind = Head.kind(name)
        when nil then line(name, value)
        when :date then line(name, value).tap { |lines| @dated ||= !lines.empty? }
        when false then raise InvalidResponse, "#{name.inspect} is no field name"
        else note(kind, name, value)
        end
      end

      # The server writes these itself. A nil says nothing, as in any other field.
      #
      # @return [nil]
      def note(kind, name, value)
        case value && kind
        when :connection then @close ||= close_option?(value)
        when :content_length then @length = parse_length(value)
        when :transfer_encoding then @encoding = encoding(value)
        when :hidden then @hijack = value if name.casecmp?("rack.hijack")
        end
        nil
      end

      # @return [String] a line for each value
      def line(name, value)
        return value.map { |one| line(name, one) }.join if value.is_a?(Array)
        return "" if value.nil?

        text = value.to_s
        raise InvalidResponse, LINES % name if text.include?("\n") && !several_in_lines?

        Head.line(name, text) || raise(InvalidResponse, "the value of #{name} holds a control character")
      end

      # Rack 3 has Arrays for them, and a line feed in a String is an error. Of early hints its specification says
      # nothing, and older releases of Rails join them with line feeds.
      def several_in_lines?
        @status == 103 || Environment.rack_release.first < 3
      end

      # RFC 9110 section 7.6.1. The other options are the server's own affair.
      def close_option?(value)
        Array(value).any? { |one| one.to_s.match?(/(\A|[,\s])close(\z|[,\s])/i) }
      end

      def parse_length(value)
        text = value.to_s
        return Integer(text, 10) if text.match?(/\A\d{1,18}\z/)

        raise InvalidResponse, "the content-length #{value.inspect} is no length"
      end

      def encoding(value)
        text = Array(value).join(", ")
        return text if text.downcase.match?(/(\A|[, \t])chunked\z/)

        raise InvalidResponse, "the transfer-encoding #{value.inspect} does not end with chunked"
      end
    end
  end
end
