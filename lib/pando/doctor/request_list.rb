# frozen_string_literal: true

require "json"
require "pando/doctor/request"
require "pando/errors"

module Pando
  module Doctor
    # Reads what the application is to be asked. Each line is understood by itself, so that lists
    # and logs may be mixed:
    #
    #   /notes                                              a path
    #   POST /notes text=hello                              a method, a path, perhaps a body
    #   ::1 - - [10/Oct/2024:13:55:36 +0000] "GET /a HTTP/1.1" 200 12   a log in common or combined format
    #   {"method": "GET", "path": "/notes"}                 JSON, as structured logs have it
    #
    # Of a log only GET and HEAD are replayed: it does not tell the bodies of the others.
    # The same request is sent once a round; lines behind the {LIMIT}th request are left out.
    class RequestList
      # Requests in a round.
      LIMIT = 200
      # `--requests routes`: what the application's router knows.
      ROUTES = "routes"

      METHOD = /[A-Z]+(?:-[A-Z]+)*/
      LOGGED = %r{"(#{METHOD}) (\S+) HTTP/[\d.]+"}
      LISTED = %r{\A(#{METHOD})\s+(/\S*|\*)(?:\s+(\S.*))?\z}
      VERBS = %w[method request_method verb http_method].freeze
      TARGETS = %w[path target uri request_uri url path_info].freeze
      SAFE = %w[GET HEAD].freeze
      # Bytes that would end the line or the field that they stand in.
      FORBIDDEN = /[\x00-\x20\x7f]/n
      private_constant :METHOD, :LOGGED, :LISTED, :VERBS, :TARGETS, :SAFE, :FORBIDDEN

      # @param path [String]
      # @return [RequestList]
      # @raise [UsageError] if the file cannot be read or holds no request
      def self.read(path)
        list = new(File.foreach(path, mode: "rb"))
        raise UsageError, "--requests: #{path} holds no request that can be sent" if list.requests.empty?

        list
      rescue SystemCallError => e
        raise UsageError, "--requests: #{e.message}"
      end

      # @param paths [Array<String>]
      # @return [RequestList]
      def self.of_paths(paths) = new(paths)

      # @return [Array<Request>] at most {LIMIT}, each once
      attr_reader :requests
      # @return [Integer] lines that hold no request, or one that cannot be replayed
      attr_reader :skipped

      # @param lines [Enumerable<String>]
      def initialize(lines)
        @skipped = 0
        found = {}
        lines.each do |line|
          line = line.dup.force_encoding(Encoding::UTF_8).scrub("?").strip
          next if line.empty? || line.start_with?("#")

          request = understand(line)
          request ? found[request] = true : @skipped += 1
          break if found.size >= LIMIT
        end
        @requests = found.keys
      end

      private

      def understand(line)
        request = if line.start_with?("{") then from_json(line)
                  elsif (logged = LOGGED.match(line)) then replayed(logged[1], logged[2])
                  elsif line.start_with?("/") then build("GET", line)
                  elsif (listed = LISTED.match(line)) then build(listed[1], listed[2], body: listed[3])
                  end
        request if request && sendable?(request)
      end

      def replayed(verb, target) = (build(verb, target) if SAFE.include?(verb))

      def from_json(line)
        fields = JSON.parse(line)
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
          request.verb.match?(/\A#{METHOD}\z/o) && request.headers.all? { |name, value| field?(name, value) }
      end

      def field?(name, value)
        name.match?(/\A[A-Za-z0-9!#$%&'*+.^_`|~-]+\z/) && value.is_a?(String) && !value.b.match?(/[\r\n\0]/n)
      end
    end
  end
end
