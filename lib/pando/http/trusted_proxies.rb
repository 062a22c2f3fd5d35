# frozen_string_literal: true

require "ipaddr"

module Pando
  module HTTP
    # Takes the client's address and the request's scheme from the fields of proxies that are trusted. The fields of
    # other peers change nothing, but they stay in the environment for the application. Owned by a handler, one per
    # worker.
    class TrustedProxies
      # The words of the setting; the addresses are those of RFC 1918, 3927, 4193 and 4291.
      NETWORKS = {
        "loopback" => %w[127.0.0.0/8 ::1/128],
        "private" => %w[10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 fc00::/7 fe80::/10]
      }.freeze
      UNIX = "unix"

      # The number of proxies that are checked, from the last: a client may have made the others up.
      HOPS = 32
      # Addresses that are remembered.
      KNOWN = 2048
      # Bytes of the longest address, an IPv6 one with an IPv4 part and a port.
      LONGEST = "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535".bytesize

      # The scheme for the application, which need not know WebSocket's schemes.
      SCHEMES = { "https" => "https", "wss" => "https", "http" => "http", "ws" => "http" }.freeze

      # "192.0.2.1", "192.0.2.1:80", "2001:db8::1" and "[2001:db8::1]:80"
      ADDRESS = /\A(?:(\d+\.\d+\.\d+\.\d+)(?::\d{1,5})?|\[(\h*:[\h:.]+)\](?::\d{1,5})?|([\h:.]+))\z/

      NO_ADDRESS = [].freeze

      # @return [TrustedProxies, nil] nil: no proxy is trusted
      def self.of(names)
        new(names) unless names.empty?
      end

      def initialize(names)
        @unix = names.include?(UNIX)
        @networks = (names - [UNIX]).flat_map { |name| NETWORKS.fetch(name, name) }.map { |text| IPAddr.new(text) }
        @known = {}
      end

      # @param env [Hash] where REMOTE_ADDR, rack.url_scheme and SERVER_PORT may change
      # @param peer [String, nil] the sender of the request; nil on a UNIX socket
      def apply(env, peer)
        clients = env["HTTP_X_FORWARDED_FOR"]
        scheme = env["HTTP_X_FORWARDED_PROTO"]
        ssl = env["HTTP_X_FORWARDED_SSL"]
        return unless (clients || scheme || ssl) && trust?(peer)

        client = clients && client_of(clients)
        env["REMOTE_ADDR"] = client.dup if client
        secure(env) if scheme ? scheme_of(scheme) == "https" : ssl&.casecmp?("on")
      end

      def trust?(peer) = peer ? look_up(peer).last : @unix

      private

      # Each proxy adds its peer's address at the end: the last address that is not trusted is the client's.
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

      # The nearest proxy has added the last scheme.
      def scheme_of(list)
        SCHEMES[list] || SCHEMES[list.split(",").last.to_s.strip.downcase]
      end

      # Port 80 means that the client's URL named none: then it is that of https.
      def secure(env)
        env["rack.url_scheme"] = "https"
        env["SERVER_PORT"] = "443" if env["SERVER_PORT"] == "80" && !env["HTTP_HOST"].to_s.end_with?(":80")
      end

      # @return [Array(String, Boolean)] the address as inet_ntop writes it, and whether it is trusted; nothing if it
      #   is no address
      def look_up(text)
        @known[text] || (text.bytesize <= LONGEST && judge(text)) || NO_ADDRESS
      end

      # Only addresses are remembered: a client could fill the memory with anything else.
      def judge(text)
        match = ADDRESS.match(text) or return

        address = IPAddr.new(match[1] || match[2] || match[3])
        address = address.native if address.ipv4_mapped?
        remember(text, [address.to_s.freeze, @networks.any? { |network| network.include?(address) }].freeze)
      rescue IPAddr::Error
        nil
      end

      # The copy has its own bytes. A part of a String may share those of the whole, which would be kept too.
      def remember(text, address)
        @known.clear if @known.size >= KNOWN
        @known[String.new.concat(text).freeze] = address
      end
    end
  end
end
