# frozen_string_literal: true

require "socket"
require "pando/admin/access"
require "pando/cli/command"

module Pando
  module CLI
    # `pando dashboard`: prints the URL of the dashboard, with the token for commands. Browsers send what follows the #
    # to nobody.
    #
    # @api private
    class Dashboard < Command
      # Seconds that a connection may take.
      PATIENCE = 5
      ANYWHERE = { "0.0.0.0" => "127.0.0.1", "::" => "::1" }.freeze

      private

      def perform
        require_server
        token = token()
        terminal.err.puts "pando: there is no token yet, so the page cannot send commands: #{absence}" unless token
        terminal.out.puts "http://#{host}:#{listen.port}/dashboard#{"#token=#{token}" if token}"
        CLI::OK
      end

      # @raise [UsageError]
      def require_server
        Socket.tcp(connectable, listen.port, connect_timeout: PATIENCE, &:close)
      rescue SystemCallError => e
        raise UsageError, "no server answers at #{host}:#{listen.port} (#{e.message[/\A[^-]+/].strip}). Start it, or " \
                          "reload it if the line `admin` is new"
      end

      def listen
        @listen ||= config.admin.find(&:tcp?) or raise UsageError, missing
      end

      def missing
        if config.admin.empty?
          return 'the dashboard needs an admin address: write admin "127.0.0.1:9394" into the config file'
        end

        "a browser cannot open a unix socket: add a line such as admin \"127.0.0.1:9394\" to the config file"
      end

      def connectable = ANYWHERE.fetch(listen.host, listen.host)
      def host = connectable.include?(":") ? "[#{connectable}]" : connectable

      def token
        Admin::Access.new({ "token_file" => path, "token_env" => config.admin_token_env || nil }, terminal.env).token
      end

      # As the server has it, see Server::Launch.
      def path
        return config.admin_token_file if config.admin_token_file

        "#{config.control}.token" if config.control && !config.admin_token_env
      end

      def absence
        return "#{config.admin_token_env} is not set here" if config.admin_token_env

        return "#{path} has none, or cannot be read" if config.admin_token_file

        path ? "#{path} cannot be read. The server writes it at its start" : "set `admin token_file:`"
      end
    end
  end
end
