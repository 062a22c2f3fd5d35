# frozen_string_literal: true

require "pando/cli/admin_client"
require "pando/cli/command"

module Pando
  module CLI
    # `pando dashboard`: prints the URL of the dashboard, with the token for commands. Browsers send what follows the #
    # to nobody.
    class Dashboard < Command
      private

      def config = @config ||= config_of_server

      def perform
        client.connect(listen).close
        token = client.token
        warn_of_absence unless token
        terminal.out.puts "http://#{client.name(listen)}/dashboard#{"#token=#{token}" if token}"
        CLI::OK
      end

      def warn_of_absence
        return tell "pando: the page cannot send commands: #{client.secrecy}" if client.secrecy

        tell "pando: there is no token yet, so the page cannot send commands: #{client.absence}"
      end

      def client = @client ||= AdminClient.new(config, terminal.env)

      def listen
        @listen ||= config.admin.find(&:tcp?) or raise UsageError, missing
      end

      def missing
        if config.admin.empty?
          return 'the dashboard needs an admin address: write admin "127.0.0.1:9394" into the config file'
        end

        "a browser cannot open a unix socket: add a line such as admin \"127.0.0.1:9394\" to the config file"
      end
    end
  end
end
