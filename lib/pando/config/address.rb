# frozen_string_literal: true

require "pando/compat/names"

module Pando
  class Config
    # Parses the address of a listener: HOST:PORT, PORT and [v6]:PORT, with or
    # without tcp://, unix:PATH, unix:@NAME, systemd and systemd:NAME.
    #
    #   Address.parse("[::1]:80") # => {kind: :tcp, host: "::1", port: 80}
    #
    # @api private
    module Address
      # A bare port listens here: on every IPv4 address, like -p of other servers.
      ANY = "0.0.0.0"

      # sockaddr_un.sun_path, see unix(7): 108 bytes, one of which is the NUL
      # that ends a path or begins an abstract name.
      LONGEST_NAME = 107

      SYSTEMD = "systemd"
      # Sockets that systemd passes on, all or by name (FileDescriptorName=, systemd.socket(5)). Digits would be a port.
      HANDED_OVER = /\A#{SYSTEMD}(?::(?!\d+\z)([\x21-\x39\x3b-\x7e]{1,255}))?\z/

      UNIX = %r{\Aunix:(?://)?(.*)\z}m
      V6 = /\A\[([0-9a-f:.]+(?:%[\w.-]+)?)\]:(\d+)\z/i
      HOST = /\A([\w.-]*|\*):(\d+)\z/

      class << self
        # @param address [String, Integer]
        # @return [Hash{Symbol => Object}] kind:, and host: and port: or path:
        # @raise [ArgumentError] what is wrong
        def parse(address)
          case address
          when Integer, /\A\d+\z/ then tcp(ANY, address)
          when HANDED_OVER then { kind: :systemd, path: Regexp.last_match(1) }
          when UNIX then unix(Regexp.last_match(1))
          when String then host_and_port(address.delete_prefix("tcp://"))
          else raise ArgumentError, "it is neither text nor a port"
          end
        end

        private

        def host_and_port(address)
          match = V6.match(address) || HOST.match(address)
          match ? tcp(match[1], match[2]) : raise(ArgumentError, explain(address))
        end

        def explain(address)
          case address
          when %r{\Assl://} then Compat::Names::NO_TLS.delete_suffix(".")
          when %r{\A[~./]} then "a socket's path is written unix:#{address}"
          when /\A\[?[0-9a-f]*:[^\]\s]*:/i then "an IPv6 address is written [v6]:PORT"
          when /\A([\w.-]+|\[.*\]):?\z/ then "the port is missing"
          else "it cannot be parsed"
          end
        end

        def tcp(host, port)
          port = port.to_i
          raise ArgumentError, "a port is a number from 0 to 65535" unless (0..65_535).cover?(port)

          { kind: :tcp, host: ["", "*"].include?(host) ? ANY : host, port: port }
        end

        def unix(name)
          abstract = name.start_with?("@")
          name = name.delete_prefix("@")
          raise ArgumentError, "the #{abstract ? "name" : "path"} is missing" if name.empty?
          raise ArgumentError, "it contains a NUL" if name.include?("\0")
          raise ArgumentError, "#{name} is longer than #{LONGEST_NAME} bytes" if name.bytesize > LONGEST_NAME

          { kind: abstract ? :abstract : :unix, path: name }
        end
      end
    end
  end
end
