# frozen_string_literal: true

require "io/wait"
require "json"
require "socket"
require "pando/admin/access"
require "pando/errors"
require "pando/sys"

module Pando
  module CLI
    # Asks the admin process of the server that this configuration belongs to, as a browser does.
    #
    # @api private
    class AdminClient
      # The server is there, and does not answer as it should.
      class Failed < Pando::Error; end

      # Seconds that a connection and an answer may take.
      PATIENCE = 10.0
      ANYWHERE = { "0.0.0.0" => "127.0.0.1", "::" => "::1" }.freeze
      LOCAL = /\A(?:127\.|::1\z|localhost\z)/

      # @param config [Config] @param environment [ENV]
      def initialize(config, environment)
        @config = config
        @environment = environment
      end

      # @return [String, nil] for commands, and for reading at an address that other machines can reach
      def token = @token ||= Admin::Access.new(settings, @environment).token

      # @return [String] why there is none
      def absence
        return "#{@config.admin_token_env} is not set here" if @config.admin_token_env
        return "#{path} has none, or cannot be read" if @config.admin_token_file

        path ? "#{path} cannot be read. The server writes it at its start" : "set `admin token_file:`"
      end

      # @param listen [Config::Listen] of `admin`, a TCP address
      # @return [String] where it can be reached from here
      def host(listen) = ANYWHERE.fetch(listen.host, listen.host)

      # @raise [UsageError] no server is there
      def connect(listen)
        return UNIXSocket.new(listen.kind == :abstract ? "\0#{listen.path}" : listen.path) unless listen.tcp?

        Socket.tcp(host(listen), listen.port, connect_timeout: PATIENCE)
      rescue SystemCallError => e
        raise UsageError, "no server answers at #{name(listen)} (#{e.message[/\A[^-]+/].strip}). Start it, or reload " \
                          "it if the line `admin` is new"
      end

      # @param target [String] a path
      # @return [Object] the answer's JSON
      # @raise [UsageError] no server is there @raise [Failed]
      def read(target)
        listen = nearest
        socket = connect(listen)
        socket.write("GET #{target} HTTP/1.0\r\nHost: localhost\r\n#{authorization(listen)}\r\n")
        parsed(everything(socket), listen)
      rescue SystemCallError, IOError => e
        raise Failed, "the server at #{name(listen)} has not answered: #{e.message}"
      ensure
        socket&.close
      end

      private

      # The address at which reading needs no token, if there is one.
      def nearest
        listens = @config.admin
        listens.find { |one| !one.tcp? } || listens.find { |one| one.host.match?(LOCAL) } || listens.first ||
          raise(UsageError, "the admin process remembers the past: write admin \"127.0.0.1:9394\" into the config " \
                            "file, and reload the server")
      end

      def authorization(listen)
        "Authorization: Bearer #{token}\r\n" if listen.tcp? && !listen.host.match?(LOCAL) && token
      end

      def everything(socket)
        deadline = Sys.now + PATIENCE
        text = +"".b
        loop do
          part = socket.read_nonblock(65_536, exception: false)
          return text unless part
          next text << part unless part == :wait_readable

          left = deadline - Sys.now
          raise IOError, "it took longer than #{PATIENCE.round} s" unless left.positive? && socket.wait_readable(left)
        end
      end

      def parsed(answer, listen)
        head, body = answer.split("\r\n\r\n", 2)
        facts = JSON.parse(body.to_s.force_encoding("UTF-8"))
        status = head[%r{\AHTTP/1\.[01] (\d{3})}, 1]
        return facts if status == "200"

        raise Failed, "the server at #{name(listen)} answered #{status}: #{facts["error"]}"
      rescue JSON::ParserError
        raise Failed, "#{name(listen)} answered with something that is not Pando's"
      end

      def name(listen)
        return listen.path unless listen.tcp?

        host = host(listen)
        "#{host.include?(":") ? "[#{host}]" : host}:#{listen.port}"
      end

      def settings = { "token_file" => path, "token_env" => @config.admin_token_env || nil }

      # As the server has it, see Server::Launch.
      def path
        return @config.admin_token_file if @config.admin_token_file

        "#{@config.control}.token" if @config.control && !@config.admin_token_env
      end
    end
  end
end
