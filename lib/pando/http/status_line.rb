# frozen_string_literal: true

module Pando
  module HTTP
    # Status lines and the phrases in them (RFC 9110 section 15).
    #
    # @api private
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
      # Not where there is no answer yet, and not where there is no body.
      BEFORE_BODY = LINES.except(101, 103, 204, 205, 304).freeze
      private_constant :LINES, :BEFORE_BODY

      class << self
        # @param status [Object]
        # @return [String, nil] with CRLF; nil if there is anything special about that status
        def before_body(status)
          BEFORE_BODY[status]
        end

        # @param status [Integer] three digits
        # @return [String] with CRLF; the phrase may be empty (RFC 9112 section 4)
        def for(status)
          LINES.fetch(status) { "HTTP/1.1 #{status} \r\n" }
        end
      end
    end
  end
end
