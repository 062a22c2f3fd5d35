# frozen_string_literal: true

require "ipaddr"

module Conformance
  # What RFC 9112 says about the bytes that a client sends on a connection before it closes its side. It follows the
  # grammar of the RFC, is slow and simple, and shares nothing with the parser that it judges.
  #
  #   RFC9112.read("GET / HTTP/1.1\r\nHost: a\r\n\r\n") # => [#<Message verb="GET" ...>]
  #   RFC9112.read("GET / HTTP/1.1\r\n\r\n")            # => [#<Refusal reason="Host is missing">]
  #
  # Where the RFC lets a server choose, this takes the strict choice. A Message that may be accepted anyway says so in
  # `lenient`.
  module RFC9112
    # `keep`: another message may follow on the connection; `ends`: the position of its end.
    Message = Struct.new(:verb, :target, :host, :body, :keep, :ends, :lenient, :fields, :trailer, keyword_init: true)
    # No server may process this.
    Refusal = Struct.new(:reason)

    class Malformed < StandardError; end

    CRLF = "\r\n"
    TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/n                              # RFC 9110 section 5.6.2
    LINE = %r{\A(#{TOKEN}) ([!-~]+) HTTP/(\d)\.(\d)\z}n                  # section 3
    VCHAR = /[!-~\x80-\xff]/n                                            # RFC 9110 section 5.5
    FIELD = /\A(#{TOKEN}):[ \t]*((?:#{VCHAR}|[ \t]+(?=#{VCHAR}))*)[ \t]*\z/n # section 5
    PCHAR = /[A-Za-z0-9\-._~!$&'()*+,;=:@]|%\h\h/n                       # RFC 3986 section 3.3
    PATH = %r{(?:/(?:#{PCHAR})*)}n
    QUERY = %r{(?:\?(?:#{PCHAR}|[/?])*)?}n
    ORIGIN = /\A#{PATH}+#{QUERY}\z/n                                     # section 3.2.1
    ABSOLUTE = %r{\Ahttp://([^/?]*)#{PATH}*#{QUERY}\z}ni                 # section 3.2.2
    # Browsers send these without escaping, and docs/http.md says that Pando accepts them.
    LOOSE_PATH = %r{(?:/(?:#{PCHAR}|[\[\]|])*)}n
    LOOSE_QUERY = /(?:\?[!$%-;=?-~]*)?/n
    LOOSE_ORIGIN = /\A#{LOOSE_PATH}+#{LOOSE_QUERY}\z/n
    LOOSE_ABSOLUTE = %r{\Ahttp://([^/?]*)#{LOOSE_PATH}*#{LOOSE_QUERY}\z}ni
    REG_NAME = /(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%\h\h)+/n                  # RFC 3986 section 3.2.2
    AUTHORITY = /\A(?:#{REG_NAME}|\[(?<v6>[\h:.]+)\]|\[v\h+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+\])(?::(?<port>\d*))?\z/ni
    QUOTED = /"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"/n         # RFC 9110 section 5.6.4
    BWS = /[ \t]*/n
    CHUNK = /\G(\h+)(?:#{BWS};#{BWS}#{TOKEN}(?:#{BWS}=#{BWS}(?:#{TOKEN}|#{QUOTED}))?)*\r\n/n # section 7.1.1

    class << self
      # @param bytes [String] in binary
      # @return [Array<Message, Refusal>] in order; nothing follows a Refusal or a message that is not kept
      def read(bytes)
        found = []
        at = 0
        while at < bytes.bytesize
          message, at = next_message(bytes, at)
          return found unless message

          found << message
          return found unless message.keep
        end
        found
      rescue Malformed => e
        found << Refusal.new(e.message)
      end

      private

      def refuse(reason) = raise(Malformed, reason)

      # Section 2.2: empty lines before a request are skipped, in any number.
      def next_message(bytes, at)
        blank = 0
        (blank += 1) && (at += 2) while bytes.byteslice(at, 2) == CRLF
        refuse("too many empty lines") if blank > 2
        if at == bytes.bytesize
          refuse("empty lines and no request") if blank.positive?
          return [nil, at]
        end
        read_message(bytes, at)
      end

      def read_message(bytes, at)
        head_end = bytes.index("\r\n\r\n", at) or refuse("no end of the head")
        line, *lines = bytes.byteslice(at, head_end - at).split(CRLF, -1)
        match = LINE.match(line) or refuse("malformed request line")
        refuse("another major version") unless match[3] == "1"
        message = Message.new(verb: match[1], target: match[2], lenient: [], trailer: [],
                              fields: lines.map { |text| field(text) })
        frame(message, minor: match[4].to_i, bytes: bytes, at: head_end + 4)
      end

      def field(text)
        match = FIELD.match(text) or refuse("malformed field line")
        [match[1].downcase, match[2]]
      end

      def frame(message, minor:, bytes:, at:)
        message.host = check_target(message, check_host(message, minor))
        message.keep = keep?(message, minor)
        chunked = coding(message, minor)
        length = length(message)
        refuse("both Transfer-Encoding and Content-Length") if chunked && length
        message.body, at = chunked ? chunks(message, bytes, at) : sized(bytes, at, length || 0)
        message.lenient << "method longer than 32 bytes" if message.verb.bytesize > 32
        message.ends = at
        [message, at]
      end

      def values(message, name) = message.fields.filter_map { |key, value| value if key == name }

      # RFC 9110 section 5.6.1; a field without a value is one empty element.
      def list(message, name)
        values(message, name).flat_map { |value| value.empty? ? [""] : value.split(/[ \t]*,[ \t]*/n, -1) }
      end

      # Section 3.2
      def check_host(message, minor)
        hosts = values(message, "host")
        refuse("more than one Host") if hosts.size > 1
        refuse("Host is missing") if hosts.empty? && minor.positive?
        hosts.each { |host| authority(host) unless host.empty? }
        hosts.first
      end

      def authority(text)
        match = AUTHORITY.match(text) or refuse("malformed host")
        refuse("a port beyond 65535") if match[:port].to_i > 65_535
        refuse("malformed IPv6 address") if match[:v6] && !ipv6?(match[:v6])
      end

      def ipv6?(text)
        IPAddr.new(text).ipv6?
      rescue IPAddr::Error
        false
      end

      # The effective host, sections 3.2.2 and 3.3.
      def check_target(message, host)
        target = message.target
        refuse("CONNECT is for proxies") if message.verb == "CONNECT"
        return host if target == "*" && message.verb == "OPTIONS"

        match = ORIGIN.match(target) || ABSOLUTE.match(target)
        unless match
          match = LOOSE_ORIGIN.match(target) || LOOSE_ABSOLUTE.match(target) || refuse("malformed target")
          message.lenient << "characters that RFC 3986 wants encoded"
        end
        return host unless match[1]

        authority(match[1])
        match[1]
      end

      # Section 9.3
      def keep?(message, minor)
        options = list(message, "connection")
        refuse("malformed Connection") unless options.all? { |one| one.empty? || one.match?(/\A#{TOKEN}\z/n) }
        options.map!(&:downcase)
        return false if options.include?("close")

        minor.positive? || options.include?("keep-alive")
      end

      # Section 6.1; nil: none
      def coding(message, minor)
        return if values(message, "transfer-encoding").empty?

        refuse("Transfer-Encoding in HTTP/1.0") if minor.zero?
        codings = list(message, "transfer-encoding").map(&:downcase)
        codings == %w[chunked] || refuse("a transfer coding but chunked alone")
      end

      # Section 6.2, RFC 9110 section 8.6; nil: none
      def length(message)
        return if values(message, "content-length").empty?

        lengths = list(message, "content-length")
        refuse("malformed Content-Length") unless lengths.all?(/\A\d+\z/n)
        refuse("differing Content-Length") if lengths.map(&:to_i).uniq.size > 1
        message.lenient << "the same Content-Length twice" if lengths.size > 1
        lengths.first.to_i
      end

      # Section 6.3
      def sized(bytes, at, length)
        refuse("the body is cut off") if bytes.bytesize - at < length
        [bytes.byteslice(at, length), at + length]
      end

      # Section 7.1
      def chunks(message, bytes, at)
        body = "".b
        loop do
          match = CHUNK.match(bytes, at) or refuse("malformed chunk size")
          message.lenient << "a chunk size of more than 15 digits" if match[1].size > 15
          at = match.end(0)
          size = match[1].hex
          return [body, trailer(message, bytes, at)] if size.zero?

          refuse("malformed chunk") unless bytes.bytesize >= at + size + 2 && bytes.byteslice(at + size, 2) == CRLF
          body << bytes.byteslice(at, size)
          at += size + 2
        end
      end

      # Section 7.1.2; returns the end
      def trailer(message, bytes, at)
        loop do
          line_end = bytes.index(CRLF, at) or refuse("no end of the trailer section")
          line = bytes.byteslice(at, line_end - at)
          at = line_end + 2
          return at if line.empty?

          message.trailer << field(line)
        end
      end
    end
  end
end
