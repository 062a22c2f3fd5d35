# frozen_string_literal: true

require "pando/cli"
require "pando/config"

module Pando
  module CLI
    # The base class of most commands. It provides the flags of all settings,
    # --help and --version, and the effective Config. A subclass implements
    # #perform and may add to #switches.
    #
    # @api private
    class Command
      Switch = Config::Flags::Switch

      HELP = Switch.new(name: :help, flags: %w[-h --help], help: "Show this text.").freeze
      VERSION = Switch.new(name: :version, flags: %w[-v --version], help: "Show the version.").freeze

      # @param arguments [Array<String>] without the command's name
      def initialize(arguments, terminal)
        @arguments = arguments
        @terminal = terminal
      end

      # @return [Integer] exit status
      # @raise [UsageError, ConfigError]
      def call
        return other("help") if flags[:help]
        return other("version") if flags[:version]

        perform
      end

      # @return [Array<Switch>] flags of this command that are not settings
      def self.switches = []

      private

      attr_reader :terminal

      def perform
        raise NotImplementedError
      end

      def flags
        switches = [*self.class.switches, HELP, VERSION]
        @flags ||= Config::Flags.parse(@arguments, switches: switches, most_words: most_words)
      end

      # How many words that are not flags the command takes.
      def most_words = 1

      def config
        @config ||= Config.load(flags, env: terminal.env, dir: directory)
      end

      # The directory as the user sees it, with symbolic links unresolved (pwd(1)): a link such as `current` may
      # lead to another release when the server is reloaded.
      def directory
        seen = terminal.env["PWD"].to_s
        File.absolute_path?(seen) && File.identical?(seen, ".") ? seen : Dir.pwd
      end

      # @return [Integer] exit status
      def report_failure(reason)
        terminal.err.puts "pando: #{reason}"
        CLI::FAILED
      end

      def other(name) = CLI.command(name).new([], terminal).call
    end
  end
end
