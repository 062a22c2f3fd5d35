# frozen_string_literal: true

module Pando
  module HTTP
    # What the server needs of a request after the application may have changed the environment. Owned by a
    # {Connection}, which uses one object for all requests.
    #
    # @api private
    class Request
      # @return [String] without the query, which may hold a secret
      attr_reader :path
      # @return [0, 1] HTTP/1.0 or HTTP/1.1
      attr_reader :minor
      attr_reader :env, :verb, :input

      def begin(env, minor)
        @env = env
        @verb = env["REQUEST_METHOD"]
        @path = env["PATH_INFO"]
        @minor = minor
        @input = env["rack.input"]
        self
      end

      def forget
        @env = @verb = @path = @input = nil
      end

      def head? = @verb == "HEAD"

      # @return [Boolean] whether the client would go on in another protocol (RFC 9110 section 7.8)
      def upgrade? = @minor.positive? && @env.key?("HTTP_UPGRADE")

      # Stands for a request that could not be read.
      UNKNOWN = new.begin({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "" }, 1).freeze

      def attach(body)
        return unless body

        @env["CONTENT_LENGTH"] ||= body.size.to_s if body.size
        @env["rack.input"] = @input = body.input
      end
    end
  end
end
