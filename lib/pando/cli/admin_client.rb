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
    class AdminClient
      # The server is there, and does not answer as it should.
      class Failed < Pando::Error; end

      # The answer takes too long.
      class Late < IOError; end

      LATE = "it takes longer than 10 s. A new address answers once the release that brought it has proved itself"
      NO_ADDRESS = "the admin process remembers the past: write admin \"127.0.0.1:9394\" into the config file, and " \
                   "reload the server"
      # How often the admin process is asked, and seconds between.
      TRIES = 10
      PAUSE = 0.3
      # Seconds that a connection and an answer may take.
      PATIENCE = 10.0
      ANYWHERE = { "0.0.0.0" => "127.0.0.1", "::" => "::1" }.freeze
      LOCAL = /\A(?:127\.|::1\z|localhost\z)/

      def initialize(config, environment)
        @config = config
        @environment = environment
      end

      # @return [String, nil] for commands, and for reading at an address that other machines can reach
      def token = @token ||= Admin::Access.new(settings, @environment).token

      # @return [String, nil] why this user may not know the token; nil: there may be none
      def secrecy
        File.open(path, &:close) if path
        nil
      rescue Errno::EACCES
        "only root and the server's own user can read the token in #{path}"
      rescue SystemCallError
        nil
      end

      def absence
        return "#{@config.admin_token_env} is not set here" if @config.admin_token_env
        return "#{path} has none, or cannot be read" if @config.admin_token_file

        path ? "#{path} cannot be read. The server writes it at its start" : "set `admin token_file:`"
      end

      # @param listen [Config::Listen] of `admin`
      # @return [String] where it can be reached from here: a path, or host and port
      def name(listen)
        return listen.path unless listen.tcp?

        host = host(listen)
        "#{host.include?(":") ? "[#{host}]" : host}:#{listen.port}"
      end

      # @raise [UsageError] no server is there
      def connect(listen)
        return UNIXSocket.new(listen.kind == :abstract ? "\0#{listen.path}" : listen.path) unless listen.tcp?

        Socket.tcp(host(listen), listen.port, connect_timeout: PATIENCE)
      rescue SystemCallError, SocketError => e
        raise UsageError, "no server answers at #{name(listen)} (#{e.message[/\A[^-]+/].strip}). Start it, or reload " \
                          "it if the line `admin` is new"
      end

      # Asks at the first address that can be reached. If the admin process dies meanwhile, the next one is asked.
      # @return [Object] the answer's JSON
      def read(target)
        tries ||= TRIES
        ask(target)
      rescue SystemCallError, IOError => e
        raise Failed, "the admin process has not answered: #{e.message}" if (tries -= 1).zero? || e.is_a?(Late)

        sleep(PAUSE)
        retry
      end

      private

      def ask(target)
        listen, socket = reach
        socket.write("GET #{target} HTTP/1.0\r\nHost: localhost\r\n#{authorization(listen)}\r\n")
        parsed(everything(socket), listen)
      ensure
        socket&.close
      end

      # Addresses at which reading needs no token come first.
      def reach
        listens = @config.admin.sort_by.with_index { |one, place| [one.tcp? ? 1 : 0, local?(one) ? 0 : 1, place] }
        raise UsageError, NO_ADDRESS if listens.empty?

        begin
          listen = listens.shift
          [listen, connect(listen)]
        rescue UsageError
          listens.empty? ? raise : retry
        end
      end

      def local?(listen) = !listen.tcp? || listen.host.match?(LOCAL)

      def authorization(listen)
        "Authorization: Bearer #{token}\r\n" if !local?(listen) && token
      end

      def everything(socket)
        deadline = Sys.now + PATIENCE
        text = +"".b
        loop do
          part = socket.read_nonblock(65_536, exception: false)
          return text unless part
          next text << part unless part == :wait_readable

          left = deadline - Sys.now
          raise Late, LATE unless left.positive? && socket.wait_readable(left)
        end
      end

      def parsed(answer, listen)
        head, body = answer.split("\r\n\r\n", 2)
        raise IOError, "it closed the connection" unless body

        facts = JSON.parse(body.force_encoding("UTF-8"))
        status = head[%r{\AHTTP/1\.[01] (\d{3})}, 1]
        return facts if status == "200"

        raise Failed, "the server at #{name(listen)} answered #{status}: #{facts["error"]}"
      rescue JSON::ParserError
        raise Failed, "#{name(listen)} answered with something that is not Pando's"
      end

      def host(listen) = ANYWHERE.fetch(listen.host, listen.host)

      def settings = { "token_file" => path, "token_env" => @config.admin_token_env || nil }

      # As the server has it, see Server::Launch.
      def path
        return @config.admin_token_file if @config.admin_token_file

        "#{@config.control}.token" if @config.control && !@config.admin_token_env
      end
    end
  end
end
