# frozen_string_literal: true

require "pando/http/request_body"
require "pando/version"

module Pando
  module HTTP
    # Makes the Rack environment of each request that one listener receives: a copy of a template, filled in from the
    # parsed head.
    #
    # Rack 3 and Rack 2 specify different environments. The loaded Rack decides when the worker starts; without Rack it
    # is Rack 3's. Owned by the handler, one for each listener.
    class Environment
      # The address of a client on a UNIX socket, for applications that trust local proxies.
      LOCAL = "127.0.0.1"

      # Keys of an environment without many fields; tables come in powers of two.
      ROOM = 20

      # The keys of every request, with their most frequent values: a Hash that has the keys already need not grow.
      REQUEST = { "REQUEST_METHOD" => "GET", "REQUEST_URI" => nil, "PATH_INFO" => nil, "QUERY_STRING" => nil,
                  "SERVER_PROTOCOL" => "HTTP/1.1", "REMOTE_ADDR" => nil }.freeze

      def self.rack_release
        defined?(::Rack::RELEASE) ? ::Rack::RELEASE.split(".").first(2).map(&:to_i) : [3, 1]
      end

      # @param listener [Socket] names the server if the request does not
      # @param proxies [TrustedProxies, nil] nil: nobody is trusted
      def initialize(listener, proxies: nil, errors: $stderr, multithread: false, rack: Environment.rack_release)
        @proxies = proxies
        @multithread = multithread
        @rack2 = rack.first < 3
        # Rack 3.1 lets OPTIONS * through as it is; before, a path began with a slash or was empty.
        @asterisk = (rack <=> [3, 1]) >= 0 ? "*" : ""
        @template = roomy(template(listener.local_address, errors)).freeze
      end

      def build(parser, buffer, remote)
        env = parser.environment(@template, buffer, remote || LOCAL, @asterisk)
        @proxies.apply(env, remote) if @proxies && parser.forwarded?
        @rack2 ? env["HTTP_VERSION"] = env["SERVER_PROTOCOL"] : env["rack.response_finished"] = []
        env["rack.after_reply"] = [] # Puma's key: libraries that know Puma add callbacks to it
        env
      end

      private

      # A copy has a table of the same size: with room for what a request adds, it need not grow.
      def roomy(hash)
        (hash.size...ROOM).each { |number| hash[number] = nil }
        hash.delete_if { |key, _value| key.is_a?(Integer) }
      end

      def template(local, errors)
        { "SCRIPT_NAME" => "", "SERVER_NAME" => name(local), "SERVER_PORT" => local.ip? ? local.ip_port.to_s : "80",
          "SERVER_SOFTWARE" => "pando/#{VERSION}", "rack.url_scheme" => "http", "rack.errors" => errors,
          "rack.input" => NoBody::NONE, "rack.hijack?" => true, **(@rack2 ? rack2 : {}), **REQUEST }
      end

      def rack2
        { "rack.version" => [1, 3].freeze, "rack.multithread" => @multithread, "rack.multiprocess" => true,
          "rack.run_once" => false }
      end

      def name(local)
        return "localhost" unless local.ip?

        local.ipv6? ? "[#{local.ip_address[/[^%]+/]}]" : local.ip_address
      end
    end
  end
end
