# frozen_string_literal: true

require "ipaddr"

module Pando
  module HTTP
    # Which peers are believed when they say whom they speak for, and what follows
    # from it: the client's address and the scheme of his request. Peers that are
    # not believed change nothing; what they sent stays in the environment, for the
    # application may know better. One per worker.
    #
    # @api private
    class TrustedProxies
      # The words of the setting; the addresses are those of RFC 1918, 3927, 4193 and 4291.
      NETWORKS = {
        "loopback" => %w[127.0.0.0/8 ::1/128],
        "private" => %w[10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 fc00::/7 fe80::/10]
      }.freeze
      UNIX = "unix"

      # The last proxies that are looked at: each of them is one more that a client may have made up.
      HOPS = 32
      # Addresses that are remembered.
      KNOWN = 2048

      # What a scheme is to the application, which need not know of WebSocket's own.
      SCHEMES = { "https" => "https", "wss" => "https", "http" => "http", "ws" => "http" }.freeze

      # "192.0.2.1", "192.0.2.1:80", "2001:db8::1" and "[2001:db8::1]:80"
      ADDRESS = /\A(?:(\d+\.\d+\.\d+\.\d+)(?::\d{1,5})?|\[(\h*:[\h:.]+)\](?::\d{1,5})?|([\h:.]+))\z/

      # @param names [Array<String>] as the setting has them
      # @return [TrustedProxies, nil] nil if nobody is trusted
      def self.of(names)
        new(names) unless names.empty?
      end

      def initialize(names)
        @unix = names.include?(UNIX)
        @networks = (names - [UNIX]).flat_map { |name| NETWORKS.fetch(name, name) }.map { |text| IPAddr.new(text) }
        @known = {}
      end

      # @param env [Hash] where REMOTE_ADDR, rack.url_scheme and SERVER_PORT may change
      # @param peer [String, nil] who sent the request; nil on a UNIX socket
      def apply(env, peer)
        clients = env["HTTP_X_FORWARDED_FOR"]
        scheme = env["HTTP_X_FORWARDED_PROTO"]
        ssl = env["HTTP_X_FORWARDED_SSL"]
        return unless (clients || scheme || ssl) && trust?(peer)

        client = clients && client_of(clients)
        env["REMOTE_ADDR"] = client.dup if client
        secure(env) if scheme ? scheme_of(scheme) == "https" : ssl&.casecmp?("on")
      end

      # @param peer [String, nil] an address; nil on a UNIX socket
      # @return [Boolean]
      def trust?(peer)
        peer ? look_up(peer).last : @unix
      end

      private

      # Each proxy adds at the end whom it was asked by: the last that is none of ours is the client.
      def client_of(list)
        client = nil
        list.split(",").last(HOPS).reverse_each do |hop|
          address, trusted = look_up(hop.strip)
          return client unless address

          client = address
          return client unless trusted
        end
        client
      end

      # The nearest proxy's word is the last.
      def scheme_of(list)
        SCHEMES[list] || SCHEMES[list.split(",").last.to_s.strip.downcase]
      end

      # The port is what the client's own URL means where it names none.
      def secure(env)
        env["rack.url_scheme"] = "https"
        env["SERVER_PORT"] = "443" if env["SERVER_PORT"] == "80" && !env["HTTP_HOST"].to_s.end_with?(":80")
      end

      # @return [Array(String, Boolean)] the address as inet_ntop writes it, and whether it is trusted; nothing if it
      #   is no address
      def look_up(text)
        @known[text] || begin
          @known.clear if @known.size >= KNOWN
          @known[text.dup.freeze] = judge(text)
        end
      end

      def judge(text)
        match = ADDRESS.match(text) or return [].freeze

        address = IPAddr.new(match[1] || match[2] || match[3])
        address = address.native if address.ipv4_mapped?
        [address.to_s.freeze, @networks.any? { |network| network.include?(address) }].freeze
      rescue IPAddr::Error
        [].freeze
      end
    end
  end
end
