# frozen_string_literal: true

module Pando
  module Doctor
    # One request that the examined application gets.
    Request = Struct.new(:verb, :target, :headers, :body, keyword_init: true) do
      # @return [Request] the one that is sent when nothing else is known
      def self.root = new(verb: "GET", target: "/", headers: {}, body: nil)

      # @return [String] without the query
      def path = target[/\A[^?]*/]

      # @return [String] as sent: one request a connection
      def to_http
        fields = { "Host" => "localhost", "User-Agent" => "pando doctor", "Accept" => "*/*" }.merge(headers)
        fields["Connection"] = "close"
        fields["Content-Length"] = body.bytesize.to_s if body
        "#{verb} #{target} HTTP/1.1\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}".b
      end

      def to_s = "#{verb} #{target}"
    end
  end
end
