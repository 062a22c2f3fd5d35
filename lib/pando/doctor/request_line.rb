# frozen_string_literal: true

require "json"
require "pando/doctor/request"

module Pando
  module Doctor
    # A line of what an application is to be asked, or has been asked: of a list or of a log. Each line is understood by
    # itself, so that lists and logs may be mixed:
    #
    #   /notes                                              a path
    #   POST /notes text=hello                              a method, a path, perhaps a body
    #   ::1 - - [10/Oct/2024:13:55:36 +0000] "GET /a HTTP/1.1" 200 12   a log in common or combined format
    #   Started GET "/notes" for ::1 at 2024-10-10 13:55:36             a log of Rails
    #   {"method": "GET", "path": "/notes"}                 JSON, as structured logs have it
    #
    # Lines are strangers' words: what would not be one request is none.
    class RequestLine
      METHOD = /[A-Z]+(?:-[A-Z]+)*/
      LOGGED = %r{"(#{METHOD}) (\S+) HTTP/[\d.]+"}
      STARTED = /\bStarted (#{METHOD}) "([^"\s]+)" for /
      LISTED = %r{\A(#{METHOD})\s+(/\S*|\*)(?:\s+(\S.*))?\z}
      VERBS = %w[method request_method verb http_method].freeze
      TARGETS = %w[path target uri request_uri url path_info].freeze
      SAFE = %w[GET HEAD].freeze
      # Bytes that would end the line or the field that they stand in.
      FORBIDDEN = /[\x00-\x20\x7f]/n
      private_constant :METHOD, :LOGGED, :STARTED, :LISTED, :VERBS, :TARGETS, :FORBIDDEN

      # @return [Request, nil] nil: there is none that can be sent
      attr_reader :request

      # @param line [String]
      def initialize(line)
        @line = line.dup.force_encoding(Encoding::UTF_8).scrub("?").strip
        request = understand unless empty?
        @request = request if request && sendable?(request)
      end

      # @return [Boolean] whether it says nothing
      def empty? = @line.empty? || @line.start_with?("#")

      # @return [Boolean] of a log, which does not tell the body
      def logged? = @logged == true

      # @return [Boolean] whether the request is one that only reads, as HTTP has it
      def safe? = SAFE.include?(request.verb)

      # @param name [String] @param value [String] of a header
      # @return [Boolean] whether it can be sent as one
      def self.field?(name, value)
        name.match?(/\A[A-Za-z0-9!#$%&'*+.^_`|~-]+\z/) && value.is_a?(String) && !value.b.match?(/[\r\n\0]/n)
      end

      private

      def understand
        if @line.start_with?("{") then from_json
        elsif (logged = LOGGED.match(@line) || STARTED.match(@line)) then replayed(logged[1], logged[2])
        elsif @line.start_with?("/") then build("GET", @line)
        elsif (listed = LISTED.match(@line)) then build(listed[1], listed[2], body: listed[3])
        end
      end

      def replayed(verb, target)
        @logged = true
        build(verb, target)
      end

      def from_json
        fields = JSON.parse(@line)
        verb = fields.values_at(*VERBS).compact.first || "GET"
        target = fields.values_at(*TARGETS).compact.first
        return unless [verb, target, fields.fetch("body", "")].all?(String)
        return replayed(verb.upcase, target) unless fields.key?("headers") || fields.key?("body")

        headers = fields["headers"]
        build(verb.upcase, target, headers: headers.is_a?(Hash) ? headers : {}, body: fields["body"])
      rescue JSON::ParserError
        nil
      end

      def build(verb, target, headers: {}, body: nil)
        target = target.sub(%r{\Ahttps?://[^/]+}, "")
        form = body && headers.none? { |name, _| name.casecmp?("content-type") }
        headers = headers.merge("Content-Type" => "application/x-www-form-urlencoded") if form
        Request.new(verb: verb, target: target.empty? ? "/" : target, headers: headers, body: body)
      end

      def sendable?(request)
        request.target.start_with?("/", "*") && !request.target.b.match?(FORBIDDEN) &&
          request.verb.match?(/\A#{METHOD}\z/o) && request.headers.all? { |field| RequestLine.field?(*field) }
      end
    end
  end
end
