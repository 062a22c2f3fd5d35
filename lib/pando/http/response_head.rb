# frozen_string_literal: true

require "pando/http/environment"
require "pando/http/errors"

module Pando
  module HTTP
    # Status lines and the phrases in them (RFC 9110 section 15).
    module StatusLine
      PHRASES = {
        101 => "Switching Protocols", 103 => "Early Hints",
        200 => "OK", 201 => "Created", 202 => "Accepted", 203 => "Non-Authoritative Information",
        204 => "No Content", 205 => "Reset Content", 206 => "Partial Content", 207 => "Multi-Status",
        208 => "Already Reported", 226 => "IM Used",
        300 => "Multiple Choices", 301 => "Moved Permanently", 302 => "Found", 303 => "See Other",
        304 => "Not Modified", 305 => "Use Proxy", 307 => "Temporary Redirect", 308 => "Permanent Redirect",
        400 => "Bad Request", 401 => "Unauthorized", 402 => "Payment Required", 403 => "Forbidden",
        404 => "Not Found", 405 => "Method Not Allowed", 406 => "Not Acceptable",
        407 => "Proxy Authentication Required", 408 => "Request Timeout", 409 => "Conflict", 410 => "Gone",
        411 => "Length Required", 412 => "Precondition Failed", 413 => "Content Too Large", 414 => "URI Too Long",
        415 => "Unsupported Media Type", 416 => "Range Not Satisfiable", 417 => "Expectation Failed",
        421 => "Misdirected Request", 422 => "Unprocessable Content", 423 => "Locked", 424 => "Failed Dependency",
        425 => "Too Early", 426 => "Upgrade Required", 428 => "Precondition Required", 429 => "Too Many Requests",
        431 => "Request Header Fields Too Large", 451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error", 501 => "Not Implemented", 502 => "Bad Gateway", 503 => "Service Unavailable",
        504 => "Gateway Timeout", 505 => "HTTP Version Not Supported", 506 => "Variant Also Negotiates",
        507 => "Insufficient Storage", 508 => "Loop Detected", 510 => "Not Extended",
        511 => "Network Authentication Required"
      }.freeze

      LINES = PHRASES.to_h { |status, phrase| [status, "HTTP/1.1 #{status} #{phrase}\r\n"] }.freeze
      # Without interim responses, and without those that have no body.
      BEFORE_BODY = LINES.except(101, 103, 204, 205, 304).freeze

      # @return [String] with CRLF; the phrase may be empty (RFC 9112 section 4)
      def self.for(status) = LINES.fetch(status) { "HTTP/1.1 #{status} \r\n" }
    end

    # The head of a response as the application wants it: checked, and without the fields that say where the body ends,
    # which {#complete} writes. Owned by a {Response}.
    #
    # Field names and values that could end their line early are refused, so that no data of the application becomes a
    # field (RFC 9110 section 5.5).
    class ResponseHead
      FINAL = (200..999)
      # Not an answer to the request, or not in HTTP: 101 Switching Protocols, 103 Early Hints.
      INTERIM = [101, 103].freeze
      # RFC 9110 sections 15.3.5 and 15.4.5. Not 205: it says that its body is empty.
      BODILESS = [204, 304].freeze
      LINES = "the value of %s holds a line feed; several values are an Array in Rack 3"

      # What becomes of the connection (RFC 9112 section 9.3), and the end of the head.
      CLOSE = "connection: close\r\n\r\n"
      KEEP = "\r\n"
      KEEP_1_0 = "connection: keep-alive\r\n\r\n"
      UPGRADE = "connection: upgrade\r\n\r\n"

      # The end of a head, with what becomes of the connection (RFC 9112 sections 9.3 and 9.6, appendix C.2.2).
      def self.ending(client, request)
        return CLOSE unless client.persistent?

        request.minor.zero? ? KEEP_1_0 : KEEP
      end

      attr_reader :status
      # @return [Integer, nil] the Content-Length that the application gave
      attr_reader :length
      # @return [#call, nil] what the response field `rack.hijack` holds
      attr_reader :hijack

      # @param fields [#each] names with a String, or an Array of them
      # @raise [InvalidResponse]
      def initialize(status, fields)
        @status = status.is_a?(Integer) ? status : Integer(status, exception: false)
        unless FINAL.cover?(@status) || interim?
          raise InvalidResponse, "the status #{status.inspect} is not a final status"
        end

        @length = @encoding = @hijack = nil
        @dated = @close = false
        @lines = Head.lines(fields, self)
      end

      # @return [Boolean] whether this is no final status
      def interim? = INTERIM.include?(@status)

      # @return [Boolean] whether this status never has a body
      def bodiless? = BODILESS.include?(@status)

      # @return [Boolean] whether nothing but the body's own kind says how it is to be sent
      def ordinary? = @encoding.nil? && @hijack.nil? && @status != 205

      # @return [Boolean] whether the application has encoded the body itself
      def encoded? = !@encoding.nil?

      # @return [Boolean] whether the application wants the connection closed
      def close? = @close

      def interim
        Head.complete(StatusLine.for(@status), @lines, nil, KEEP, true)
      end

      # Writes what ends a head.
      #
      # @param body [Integer, :chunked, :encoded, nil] bytes of the body, or how it is
      #   delimited; nil if by the end of the connection, or by having none
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

      # Called by Head.lines for each field that has a meaning for the server, or whose value is no String.
      #
      # @return [String, nil] its lines in the head
      def add(name, value)
        name = name.to_s
        case kind = Head.kind(name)
        when nil then line(name, value)
        when :date then line(name, value).tap { |lines| @dated ||= !lines.empty? }
        when false then raise InvalidResponse, "#{name.inspect} is not a field name"
        else note(kind, name, value)
        end
      end

      # The server writes these itself. A nil is ignored, as in any other field.
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

      # In Rack 3 several values are an Array, and a line feed in a String is an error. Its specification does not
      # mention early hints, and older releases of Rails join them with line feeds.
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

        raise InvalidResponse, "the content-length #{value.inspect} is not a length"
      end

      def encoding(value)
        text = Array(value).join(", ")
        return text if text.downcase.match?(/(\A|[, \t])chunked\z/)

        raise InvalidResponse, "the transfer-encoding #{value.inspect} does not end with chunked"
      end
    end
  end
end
