# frozen_string_literal: true

module Conformance
  # Random requests from a seed, most of them slightly wrong.
  class Mutations
    SEEDS = [
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET /a/b?c=d&e=%20 HTTP/1.1\r\nHost: example.com:8080\r\nAccept: */*\r\nCookie: a=b; c=\"d\"\r\n\r\n",
      "GET / HTTP/1.0\r\n\r\n",
      "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
      "HEAD /x HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET http://example.com/p?q HTTP/1.1\r\nHost: example.com\r\n\r\n",
      "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
      "POST /f HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
      "POST /f HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Type: text/plain\r\n\r\n",
      "PUT /f HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n" \
      "3;a=b;c=\"d\\\"e\"\r\nabc\r\n10\r\n0123456789abcdef\r\n0;z\r\nX: y\r\nZ: w\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
      "DELETE /x HTTP/1.1\r\nHost: a.example\r\nX-One: 1\r\nX-Two: \t 2 \t\r\nX-Two: 3\r\nUpgrade: h2c\r\n" \
      "Connection: Upgrade\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 44\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\nContent-Le\r\n\r\n",
      "\r\nGET /after-an-empty-line HTTP/1.1\r\nHost: a\r\n\r\n"
    ].map { |text| text.b.freeze }.freeze

    WORDS = [
      "\r\n", "\n", "\r", "\r\n\r\n", " ", "\t", "\0", ":", ": ", ",", ", ", ";", "=", "\"", "\\", "/", "?", "#", "%",
      "%41", "*", "@", "[", "]", "[::1]", "[v1.a]", "1.2.3.4", "::", "http://", "https://", "HTTP://b/", "GET ",
      "HEAD ", "POST ", "OPTIONS ", "CONNECT ", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", " HTTP/1.1\r\n", " HTTP/1.0\r\n",
      " HTTP/1.2", " HTTP/0.9\r\n", "HTTP/1.1", "Host: b\r\n", "Host:\r\n", "hOST: a\r\n", "Content-Length: 5\r\n",
      "Content-Length: 0\r\n", "content-length:5\r\n", "Content-Length: +5\r\n", "Content-Length : 5\r\n",
      "Content-Length: 5, 5\r\n", "Content_Length: 5\r\n", "Content-Length: 05\r\n", "Content-Length: 0x5\r\n",
      "Transfer-Encoding: chunked\r\n", "transfer-encoding:\tCHUNKED\r\n", "Transfer-Encoding : chunked\r\n",
      "Transfer-Encoding: identity\r\n", "Transfer-Encoding: gzip, chunked\r\n",
      "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding:\r\n chunked\r\n",
      "Transfer-Encoding: xchunked\r\n", "Transfer_Encoding: chunked\r\n", "Transfer-Encoding: \x0bchunked\r\n",
      "Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: a b\r\n", "Expect: 100-continue\r\n",
      "X: a\r\n b\r\n", "X : a\r\n", "X\r\n", ": a\r\n", "X:a\r\n", "X: \x80\xFF\r\n", "X: a\0b\r\n", "X: a\rb\r\n",
      "0\r\n\r\n", "1\r\nZ\r\n", "5\r\nhello\r\n", "0;a=b\r\n", "f", "ffffffffffffffff", "00000000000000005",
      "9223372036854775807", "18446744073709551616", "0", "1", "5", "-1", "+1", "0x1", "1_0", "\x80", "\xC3\xA4",
      "\x7F", "\x01", "a" * 40
    ].map { |text| text.b.freeze }.freeze

    # Requests on one connection; changes to them.
    PIPELINED = [1, 1, 1, 1, 1, 1, 2, 2, 3].freeze
    CHANGES = [0, 1, 1, 1, 1, 2, 2, 2, 3, 5].freeze

    attr_reader :seed

    # @param seed [Integer]
    def initialize(seed)
      @seed = seed
      @random = Random.new(seed)
    end

    # @return [String] the bytes of one connection
    def next
      bytes = Array.new(pick(PIPELINED)) { pick(SEEDS) }.join
      pick(CHANGES).times { mutate(bytes) }
      bytes
    end

    private

    def pick(list) = list[@random.rand(list.size)]

    def mutate(bytes)
      at = @random.rand(bytes.bytesize + 1)
      case @random.rand(12)
      when 0 then bytes.slice!(at, 1 + @random.rand(4))
      when 1 then bytes.setbyte(at, @random.rand(256)) if at < bytes.bytesize
      when 2 then bytes.setbyte(at, bytes.getbyte(at) ^ (1 << @random.rand(8))) if at < bytes.bytesize
      when 3 then bytes.insert(at, bytes.byteslice(at, 1 + @random.rand(32)).to_s)
      when 4 then bytes.slice!(at..) if @random.rand(3).zero?
      when 5, 6 then mutate_line(bytes)
      when 7 then mutate_number(bytes)
      else bytes.insert(at, pick(WORDS))
      end
    end

    # Drops, repeats or swaps lines, or inserts a word into one.
    def mutate_line(bytes)
      lines = bytes.lines("\r\n")
      return if lines.empty?

      at = @random.rand(lines.size)
      case @random.rand(4)
      when 0 then lines.delete_at(at)
      when 1 then lines.insert(@random.rand(lines.size + 1), lines[at].dup)
      when 2 then lines.insert(at, pick(WORDS))
      else lines[at], lines[-1 - at] = lines[-1 - at], lines[at]
      end
      bytes.replace(lines.join)
    end

    def mutate_number(bytes)
      numbers = bytes.enum_for(:scan, /\d+/n).map { Regexp.last_match.offset(0) }
      from, to = pick(numbers) if numbers.any?
      bytes[from...to] = pick(WORDS) if from
    end
  end
end
