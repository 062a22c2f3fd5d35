# frozen_string_literal: true

require "json"
require "pando/errors"

module Pando
  module Doctor
    # One request for the examined application.
    Request = Struct.new(:verb, :target, :headers, :body, keyword_init: true) do
      # @return [Request] the default
      def self.root = new(verb: "GET", target: "/", headers: {}, body: nil)

      # @return [String] without the query
      def path = target[/\A[^?]*/]

      # @return [Hash{String => String}] the headers, where a later one replaces an earlier one of that name in any case
      def self.merge(*headers)
        headers.flat_map(&:to_a).to_h { |name, value| [name.downcase, [name, value]] }.values.to_h
      end

      # @param more [Hash{String => String}] headers of all requests; its own come before them
      # @return [Request]
      def with_headers(more) = Request.new(**to_h, headers: Request.merge(more, headers))

      # @param location [String, nil] of a redirection
      # @return [Boolean] whether it leads to the same address over TLS, and {#over_tls} is another request
      def sent_to_tls?(location)
        authority = location.to_s.b[%r{\Ahttps://[^/]+}n]
        !authority.nil? && location.b.delete_prefix(authority) == target.b && over_tls != self
      end

      # @return [Request] as a TLS proxy sends it; the same one if it names its protocol itself
      def over_tls = with_headers(Request::TLS)

      # @param defaults [Hash{String => String}] its own headers come before them
      # @return [Hash{String => String}] the headers that are sent, without those of the connection
      def fields(defaults)
        fields = Request.merge(defaults, headers).reject { |name, _| Request::RESERVED.include?(name.downcase) }
        fields.merge!(Request::FORM) if body && fields.none? { |name, _| name.casecmp?("content-type") }
        fields
      end

      # @return [String] as sent: one request a connection
      def to_http
        fields = fields(Request::DEFAULTS)
        fields["Connection"] = "close"
        fields["Content-Length"] = body.bytesize.to_s if body
        "#{verb} #{target} HTTP/1.1\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}".b
      end

      def to_s = "#{verb} #{target}"
    end

    Request::DEFAULTS = { "Host" => "localhost", "User-Agent" => "pando doctor", "Accept" => "*/*" }.freeze
    # The header by which a TLS proxy satisfies an application that insists on TLS.
    Request::TLS = { "X-Forwarded-Proto" => "https" }.freeze
    # The type of a body for which nobody has named another one.
    Request::FORM = { "Content-Type" => "application/x-www-form-urlencoded" }.freeze
    # Headers that the sender sets by itself, or leaves out: its own framing of the body holds.
    Request::RESERVED = %w[connection content-length transfer-encoding].freeze

    # A line of a list of requests or of a log, in one of the formats in docs/doctor.md. Each line is understood by
    # itself, so that lists and logs may be mixed.
    #
    # Nothing in a line is trusted: a line that would not make exactly one request makes none.
    class RequestLine
      METHOD = /[A-Z]+(?:-[A-Z]+)*/
      LOGGED = %r{"(#{METHOD}) (\S+) HTTP/[\d.]+"}
      STARTED = /\bStarted (#{METHOD}) "([^"\s]+)" for /
      LISTED = %r{\A(#{METHOD})\s+(/\S*|\*)(?:\s+(\S.*))?\z}
      VERBS = %w[method request_method verb http_method].freeze
      TARGETS = %w[path target uri request_uri url path_info].freeze
      # Keys that only a log has, and those of a list, which a log may have too.
      LOG_KEYS = %w[status duration time timestamp @timestamp].freeze
      LIST_KEYS = %w[headers body].freeze
      # Headers of a log that are replayed. The others may be hidden (Cookie), or belong to another session or cache.
      REPLAYED = %w[accept accept-language].freeze
      SAFE = %w[GET HEAD].freeze
      # Bytes that would end the request line or the header.
      FORBIDDEN = /[\x00-\x20\x7f]/n

      # @return [Request, nil] nil: the line holds none that can be sent
      attr_reader :request
      # @return [String] the line in UTF-8, where "?" stands for bytes that are not
      attr_reader :text

      def initialize(line)
        @text = line.dup.force_encoding(Encoding::UTF_8).scrub("?").strip
        request = understand unless empty?
        @request = request if request && sendable?(request)
      end

      # Blank, or a comment.
      def empty? = text.empty? || text.start_with?("#")

      # @return [Boolean] perhaps from a log, which does not record bodies
      def logged? = surely_logged? || @bare == true

      # @return [Boolean] from a log, since nobody writes such a line into a list
      def surely_logged? = @logged == true

      # @return [Boolean] whether the method is safe, as HTTP defines it
      def safe? = SAFE.include?(request.verb)

      # @param name [String] @param value [String] of a header
      # @return [Boolean] whether the header can be sent
      def self.field?(name, value)
        name.match?(/\A[A-Za-z0-9!#$%&'*+.^_`|~-]+\z/) && value.is_a?(String) && !value.b.match?(/[\r\n\0]/n)
      end

      private

      def understand
        if text.start_with?("{") then from_json
        elsif (logged = LOGGED.match(text) || STARTED.match(text)) then replayed(logged[1], logged[2])
        elsif text.start_with?("/") then build("GET", text)
        elsif (listed = LISTED.match(text)) then build(listed[1], listed[2], body: listed[3])
        end
      end

      def replayed(verb, target)
        @logged = true
        build(verb, target)
      end

      def from_json
        fields = JSON.parse(text).compact
        note_origin(fields.keys)
        fields = replayable(fields) if logged?
        verb = fields.values_at(*VERBS).compact.first || "GET"
        target = fields.values_at(*TARGETS).compact.first
        return unless [verb, target, fields.fetch("body", "")].all?(String)

        headers = fields["headers"].is_a?(Hash) ? fields["headers"] : {}
        build(verb.upcase, target, headers: headers, body: fields["body"])
      rescue JSON::ParserError
        nil
      end

      def note_origin(keys)
        @logged = keys.intersect?(LOG_KEYS)
        @bare = !keys.intersect?(LIST_KEYS)
      end

      # A log may record bodies and headers in a form that cannot be sent.
      def replayable(fields)
        headers = fields["headers"].is_a?(Hash) ? fields["headers"] : {}
        sent = headers.select { |name, value| REPLAYED.include?(name.downcase) && RequestLine.field?(name, value) }
        fields.reject { |name, value| name == "body" && !value.is_a?(String) }.merge("headers" => sent)
      end

      def build(verb, target, headers: {}, body: nil)
        target = target.sub(%r{\Ahttps?://[^/]+}, "")
        Request.new(verb: verb, target: target.empty? ? "/" : target, headers: headers, body: body)
      end

      def sendable?(request)
        request.target.start_with?("/", "*") && !request.target.b.match?(FORBIDDEN) &&
          request.verb.match?(/\A#{METHOD}\z/o) && request.headers.all? { |field| RequestLine.field?(*field) }
      end
    end

    # The lines of a list or a log that hold a request. Notes the numbers of the others, and not what they say, which
    # may be secret. Owned by what reads a file of requests, in the command's process.
    class RequestLines
      # @return [Integer] lines that were read, without blank ones and comments
      attr_reader :read

      # @param lines [Enumerable<String>]
      def initialize(lines)
        @lines = lines
        @read = 0
        @unread = []
      end

      # @yieldparam line [RequestLine]
      def each
        @lines.each.with_index(1) do |text, number|
          line = RequestLine.new(text)
          next if line.empty?

          @read += 1
          @logged ||= line.surely_logged?
          line.request ? yield(line) : @unread << number
        end
      end

      # In a log they are no mistake: Rails writes several other lines for each request.
      # @return [Array<Integer>] the numbers of the lines that hold no request, if no line is from a log
      def unread = @logged ? [] : @unread
    end

    # The requests of a file whose lines {RequestLine} understands, each once and at most {LIMIT}. From a log only GET
    # and HEAD are replayed, because it does not record the bodies of other requests.
    class RequestList
      # Requests in a round.
      LIMIT = 200
      # The value of `--requests` that stands for the application's own routes.
      ROUTES = "routes"

      # @param path [String]
      # @return [RequestList]
      # @raise [UsageError] the file cannot be read or holds no request
      def self.read(path)
        list = new(File.foreach(path, mode: "rb"))
        raise UsageError, "--requests: #{path} holds no request that can be sent" if list.requests.empty?

        list
      rescue SystemCallError => e
        raise UsageError, "--requests: #{e.message}"
      end

      # @return [Array<Request>] at most {LIMIT}, each once
      attr_reader :requests

      # @param lines [Enumerable<String>]
      def initialize(lines)
        @read = RequestLines.new(lines)
        found = {}
        @read.each do |line|
          found[line.request] = true if line.safe? || !line.logged?
          break if found.size == LIMIT
        end
        @requests = found.keys
      end

      # @return [Array<Integer>] the numbers of the lines that hold no request, see {RequestLines}
      def unread = @read.unread

      # @return [Integer] lines that were read
      def lines = @read.read
    end
  end
end
