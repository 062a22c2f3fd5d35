# frozen_string_literal: true

require "pando/config/address"

module Pando
  class Config
    # An address to listen on and the options of its socket.
    #
    #   Listen.parse("127.0.0.1:8080", backlog: 512)
    #   Listen.parse("unix:tmp/web.sock", mode: 0o660)
    #
    # It opens no socket. Frozen, comparable by address.
    class Listen
      DEFAULTS = { backlog: 1024, proxy_protocol: false, tcp_nodelay: true, defer_accept: 1, mode: nil,
                   umask: nil }.freeze
      ONLY_TCP = %i[tcp_nodelay defer_accept].freeze
      ONLY_UNIX = %i[mode umask].freeze

      # @return [Symbol] :tcp, :unix (a path), :abstract (a name without a file) or :systemd (opened by systemd)
      attr_reader :kind
      # @return [String, nil] host name or address without brackets, for :tcp
      attr_reader :host
      # @return [Integer, nil] for :tcp; 0 lets the kernel choose
      attr_reader :port
      # @return [String, nil] path for :unix, name without its "@" for :abstract, name or nil for :systemd
      attr_reader :path
      # @return [Integer] how many connections may wait for accept(2)
      attr_reader :backlog
      # @return [Boolean] whether each connection must begin with a PROXY header
      attr_reader :proxy_protocol
      # @return [Boolean] TCP_NODELAY, see tcp(7); inherited by accepted sockets
      attr_reader :tcp_nodelay
      # @return [Integer, nil] seconds of TCP_DEFER_ACCEPT; nil: off
      attr_reader :defer_accept
      # @return [Integer, nil] permission bits of the socket's file
      attr_reader :mode
      # @return [Integer, nil] umask under which the socket's file is created
      attr_reader :umask
      # @return [Hash{Symbol => Object}] the options as given, without the defaults
      attr_reader :options

      # @param address [String, Integer] see Address
      # @param options [Hash{Symbol => Object}] see DEFAULTS
      # @return [Listen]
      # @raise [ArgumentError] what is wrong with the address
      def self.parse(address, **options)
        new(options, **Address.parse(address))
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

      # @return [Boolean]
      def tcp?
        kind == :tcp
      end

      # @return [Boolean] whether it is a unix socket, with a file or abstract
      def unix?
        %i[unix abstract].include?(kind)
      end

      # @param name [Symbol] an option
      # @return [Boolean] whether it applies to sockets of this kind
      def takes?(name)
        case kind
        when :systemd then name == :proxy_protocol
        when :tcp then !ONLY_UNIX.include?(name)
        when :unix then !ONLY_TCP.include?(name)
        else !ONLY_TCP.include?(name) && !ONLY_UNIX.include?(name)
        end
      end

      # @param directory [String] absolute
      # @return [Listen] the same with an absolute path, if it has a path
      # @raise [ArgumentError] the path has become too long
      def in(directory)
        return self unless kind == :unix

        Listen.parse("unix:#{File.expand_path(path, directory)}", **options)
      end

      # The address in the form that Listen.parse reads.
      #
      # @return [String]
      def to_s
        case kind
        when :tcp then "#{host.include?(":") ? "[#{host}]" : host}:#{port}"
        when :unix then "unix:#{path}"
        when :systemd then [Address::SYSTEMD, path].compact.join(":")
        else "unix:@#{path}"
        end
      end

      # @return [Boolean] whether both have the same address; the options do not matter
      def ==(other)
        other.is_a?(Listen) && other.to_s == to_s
      end
      alias eql? ==

      # @return [Integer]
      def hash
        to_s.hash
      end
    end
  end
end
