# frozen_string_literal: true

require "io/wait"
require "pando/cli/command"
require "pando/cli/control_client"
require "pando/telemetry/printable"

module Pando
  module CLI
    # The base class of the commands that talk to a running server. Exit status: 0 if the server carried out the
    # command, 1 if it could not, 2 if there is no server.
    class ControlCommand < Command
      TIMEOUT = Switch.new(name: :wait, flags: %w[--wait], argument: "SECONDS",
                           type: Types::Seconds.new(least: 0),
                           help: "How long a command such as refork, reload, drain, pages or stop waits for its " \
                                 "result. [300]").freeze
      PATIENCE = 300.0
      # Seconds for a command that only asks. A healthy monitor answers within milliseconds.
      ANSWER = 10.0

      def self.switches = [TIMEOUT]

      def call
        super
      rescue ControlClient::Refused, ControlClient::Silent => e
        report_failure(e.message)
      end

      private

      # By default the command has the name of its class.
      def perform = carry_out(name, order)
      def name = self.class.name[/\w+\z/].downcase

      # What the server is told with it. nil is left out.
      def order = {}

      # The names of its arguments that are not flags.
      def operands = []

      def words = flags.words

      # One more than allowed, because #path has a message for that.
      def most_words = operands.size + 1

      def path
        surplus = words[operands.size]
        raise UsageError, "unexpected argument #{surplus.inspect}. See pando --help." if surplus

        socket = config.control
        raise UsageError, "the setting `control` is off. Name the server's socket with --control PATH" unless socket

        folder = File.dirname(socket)
        raise UsageError, no_folder(folder) if config.default?(:control) && !File.directory?(folder)

        socket
      rescue ConfigError => e
        raise if flags.last(:control)

        raise ConfigError, "#{e.message}\nTo reach a running server without reading the config file, add --control PATH"
      end

      # A server creates it at its start.
      def no_folder(path)
        "there is no folder #{path} for the control socket. Either no server runs in #{config.directory}, or it " \
          "could not create the folder: see control.unavailable in its log. In that case write control \"PATH\" into " \
          "the config file, with a path in a folder that the server may write to"
      end

      # With --control the config file is not read: it may be broken, and that may be why the user asks.
      def config
        @config ||= config_of_server(read: flags.last(:control).nil?)
      end

      # Shows the progress and the result.
      def carry_out(word, pairs = {})
        last = nil
        said = ControlClient.new(path).ask!(word, pairs, timeout: patience) do |kind, facts|
          last = facts["name"] || last
          tell(kind == "waiting" ? waiting(facts) : progress(facts))
        end
        terminal.out.puts printable(said["text"])
        CLI::OK
      rescue ControlClient::Late => e
        event = " (last event: #{last})" if last
        report_failure("#{e.message}; the server continues with `#{name}`#{event}. See pando status")
      end

      # Reasons and events may have the words of clients and of the application.
      def tell(text) = super(printable(text))

      # @return [String] in which only the ends of lines steer the terminal
      def printable(text)
        text.lines(chomp: true).map { |line| Telemetry::Printable.escape(line, 4096).gsub("\\\\", "\\") }.join("\n")
      end

      def progress(event)
        more = event.except("name").map { |key, value| "#{key}=#{value.include?(" ") ? value.inspect : value}" }
        ["  #{event["name"]}", *more].join(" ")
      end

      def waiting(facts)
        seconds = facts["seconds"]
        "  waiting: #{facts["reason"]}#{", for #{seconds} s at most" if seconds}"
      end

      def patience = flags[:wait] || PATIENCE
    end
  end
end
