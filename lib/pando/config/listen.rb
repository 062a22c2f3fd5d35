# frozen_string_literal: true

require "pando/compat/names"

module Pando
  class Config
    # An address to listen on and the options of its socket.
    #
    #   Listen.parse("127.0.0.1:8080", backlog: 512)
    #   Listen.parse("unix:tmp/web.sock", mode: 0o660)
    #
    # An address is HOST:PORT, PORT or [v6]:PORT, with or without tcp://, or unix:PATH, unix:@NAME, systemd or
    # systemd:NAME. This class opens no socket. Frozen, comparable by address.
    class Listen
      # A bare port listens here: on every IPv4 address, like -p of other servers.
      ANY = "0.0.0.0"

      # sockaddr_un.sun_path, see unix(7): 108 bytes with the NUL that ends a path or begins an abstract name.
      LONGEST_NAME = 107

      SYSTEMD = "systemd"
      # Sockets that systemd passes on, all or by name (FileDescriptorName=, systemd.socket(5)). Digits would be a port.
      HANDED_OVER = /\A#{SYSTEMD}(?::(?!\d+\z)([\x21-\x39\x3b-\x7e]{1,255}))?\z/

      UNIX = %r{\Aunix:(?://)?(.*)\z}m
      V6 = /\A\[([0-9a-f:.]+(?:%[\w.-]+)?)\]:(\d+)\z/i
      HOST = /\A([\w.-]*|\*):(\d+)\z/

      DEFAULTS = { backlog: 1024, proxy_protocol: false, tcp_nodelay: true, defer_accept: 1, mode: nil,
                   umask: nil }.freeze
      # The options that apply to sockets of each kind.
      TAKEN = { tcp: %i[backlog proxy_protocol tcp_nodelay defer_accept], unix: %i[backlog proxy_protocol mode umask],
                abstract: %i[backlog proxy_protocol], systemd: %i[proxy_protocol] }.freeze

      # @return [Symbol] :tcp, :unix (a path), :abstract (a name without a file) or :systemd (opened by systemd)
      attr_reader :kind
      # @return [String, nil] host name or address without brackets, for :tcp
      attr_reader :host
      # @return [Integer, nil] for :tcp; 0 lets the kernel choose
      attr_reader :port
      # @return [String, nil] path for :unix, name without its "@" for :abstract, name or nil for :systemd
      attr_reader :path
      # The options, see the setting `listen`.
      attr_reader :backlog, :proxy_protocol, :tcp_nodelay, :defer_accept, :mode, :umask
      # @return [Hash{Symbol => Object}] the options as given, without the defaults
      attr_reader :options

      # @param address [String, Integer]
      # @param options [Hash{Symbol => Object}] see DEFAULTS
      # @return [Listen]
      # @raise [ArgumentError] what is wrong with the address
      def self.parse(address, **options)
        new(options, **place(address))
      end

      class << self
        private

        # @return [Hash{Symbol => Object}] kind:, and host: and port: or path:
        def place(address)
          case address
          when Integer, /\A\d+\z/ then tcp(ANY, address)
          when HANDED_OVER then { kind: :systemd, path: Regexp.last_match(1) }
          when UNIX then unix(Regexp.last_match(1))
          when String then host_and_port(address.delete_prefix("tcp://"))
          else raise ArgumentError, "it is neither text nor a port"
          end
        end

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

      private_class_method :new

      # @api private
      def initialize(options, kind:, host: nil, port: nil, path: nil)
        @kind = kind
        @host = host&.dup&.freeze
        @port = port
        @path = path&.dup&.freeze
        @options = options.freeze
        DEFAULTS.merge(options).each { |name, value| instance_variable_set(:"@#{name}", value) }
        freeze
      end

      def tcp? = kind == :tcp

      # @return [Boolean] whether it is a unix socket, with a file or abstract
      def unix? = %i[unix abstract].include?(kind)

      # @return [Boolean] whether the option applies to sockets of this kind
      def takes?(name) = TAKEN.fetch(kind).include?(name)

      # @param directory [String] absolute
      # @return [Listen] the same with an absolute path, if it has a path
      # @raise [ArgumentError] the path has become too long
      def in(directory)
        return self unless kind == :unix

        Listen.parse("unix:#{File.expand_path(path, directory)}", **options)
      end

      # The address in the form that Listen.parse reads.
      def to_s
        case kind
        when :tcp then "#{host.include?(":") ? "[#{host}]" : host}:#{port}"
        when :unix then "unix:#{path}"
        when :systemd then [SYSTEMD, path].compact.join(":")
        else "unix:@#{path}"
        end
      end

      # @return [Boolean] whether both have the same address; the options do not matter
      def ==(other)
        other.is_a?(Listen) && other.to_s == to_s
      end
      alias eql? ==

      def hash = to_s.hash
    end

    module Types
      # An address to listen on, a Config::Listen. Its options may also stand in the address, as a query, which is how
      # Puma writes them: "unix:///run/web.sock?umask=0111&backlog=64".
      class ListenOn < Type
        QUERY = %r{\?([^?/]*)\z}
        private_constant :QUERY

        def split_options(value)
          query = QUERY.match(value) if value.is_a?(String) && value.valid_encoding?
          return super unless query

          [query.pre_match, query[1].split("&").to_h { |part| option(*part.partition("=").values_at(0, 2)) }]
        end

        def cast(value, **options)
          listen = Listen.parse(value, **options)
          wrong = options.keys.find { |name| !listen.takes?(name) }
          wrong ? raise(Invalid, "takes no option #{wrong}: with #{listen}.") : listen
        rescue ArgumentError => e
          raise Invalid, "must be #{expects}, but is #{value.inspect}: #{e.message}."
        end

        def expects = "HOST:PORT, PORT, [v6]:PORT, unix:PATH, unix:@ABSTRACT or systemd"

        def resolved(value, directory) = value.in(directory)

        def write(value)
          [value.to_s.inspect, *value.options.map { |name, option| "#{name}: #{written(name, option)}" }].join(", ")
        end

        def export(value) = { "address" => value.to_s, **value.options.transform_keys(&:name) }

        def text(value) = value.to_s

        private

        # Puma's name for tcp_nodelay is an option without a value, too.
        def option(name, text)
          name == "low_latency" ? [:tcp_nodelay, text != "false"] : [name.to_sym, text]
        end

        def written(name, option)
          return "false" if option.nil?

          %i[mode umask].include?(name) ? format("0%o", option) : option.inspect
        end
      end

      # An address of the admin process, a Config::Listen. A bare port is not open to other machines.
      class AdminOn < ListenOn
        HOST = "127.0.0.1"

        def cast(value, **options)
          address = value.to_s.match?(/\A\d+\z/) ? "#{HOST}:#{value}" : value
          super(address, **options).tap { |listen| invalid(value) if listen.kind == :systemd }
        end

        def expects = "HOST:PORT, PORT, [v6]:PORT, unix:PATH or unix:@ABSTRACT"
      end

      # The permission bits of a unix socket's file: 0660, or "0660".
      class FileMode < Type
        def cast(value, **)
          bits = value.is_a?(String) && value.match?(/\A[0-7]{1,4}\z/) ? value.oct : value
          bits.is_a?(Integer) && (0..0o777).cover?(bits) ? bits : invalid(value, hint(value))
        end

        def expects = "permission bits from 0 to 0777"

        # Ruby reads a number without a leading zero as decimal.
        def hint(value) = (" Write 0#{value}." if value.to_s.match?(/\A[0-7]{3}\z/))

        def write(value) = value.nil? ? "none" : format("0%o", value)

        def text(value) = format("%o", value)
      end
    end
  end
end
