# frozen_string_literal: true

require "pando/cli"
require "pando/config"

module Pando
  module CLI
    # The base class of most commands. It provides the flags of all settings, --help and --version, and the effective
    # Config. A subclass implements #perform and may add to #switches, also those of the output that are below.
    class Command
      Switch = Config::Flags::Switch
      Types = Config::Types

      HELP = Switch.new(name: :help, flags: %w[-h --help], help: "Show this text.").freeze
      VERSION = Switch.new(name: :version, flags: %w[-v --version], help: "Show the version.").freeze
      TEXT_OR_JSON = Switch.new(name: :format, flags: %w[--format], argument: "text|json",
                                type: Types::Choice.new("text", "json"),
                                help: "With `config`, `status`, `events`, `slow` and `history`: the output " \
                                      "format. [text]").freeze
      REPORT = Switch.new(name: :format, flags: %w[--format], argument: "text|json|html",
                          type: Types::Choice.new("text", "json", "html"),
                          help: "With `doctor`, `pages` and `measure`: the report's format. [text]").freeze
      OUTPUT = Switch.new(name: :output, flags: %w[--output], argument: "FILE",
                          help: "With `doctor`, `pages` and `measure`: write the report to this " \
                                "file instead of stdout.").freeze

      HEADER = Switch.new(name: :header, flags: %w[--header], argument: "\"NAME: VALUE\"", repeatable: true,
                          help: "With `doctor` and `measure`: a header for each request. Repeatable.").freeze

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

      def flags
        @flags ||= parse(@arguments)
      end

      def parse(arguments)
        switches = [*self.class.switches, HELP, VERSION]
        Config::Flags.parse(arguments, switches: switches, most_words: most_words)
      end

      # How many words that are not flags the command takes.
      def most_words = 1

      def chosen_format = flags[:format] || "text"

      # The exit status may be a verdict, so it does not depend on whether the report is read to its end.
      def write_report(text)
        flags[:output] ? File.write(flags[:output], text) : terminal.out.write(text)
      rescue Errno::EPIPE
        nil
      rescue SystemCallError => e
        raise UsageError, "--output: #{e.message}"
      end

      # Checked first, because what is to be written may take minutes.
      # @param name [Symbol] of the flag
      def check_output(name = :output)
        file = flags[name] or return
        folder = File.dirname(File.expand_path(file))
        exists = File.exist?(file)
        return if exists ? File.writable?(file) && !File.directory?(file) : File.writable?(folder)

        reason = exists ? "#{file} cannot be written" : "the folder #{folder} does not exist or cannot be written to"
        raise UsageError, "--#{name.name.tr("_", "-")}: #{reason}"
      end

      # @return [Hash{String => String}]
      def headers
        Array(flags[:header]).to_h do |text|
          name, value = text.split(":", 2).map(&:strip)
          next [name, value] if value && Pando::Doctor::RequestLine.field?(name, value)

          raise UsageError, "--header: must be like \"Name: value\", but is #{text.inspect}."
        end
      end

      def config
        @config ||= load_config(flags)
      end

      # The configuration of the running server that the command is for: that of config/pando.rb, or of config/swarm.rb
      # if only that exists. If both exist, and the server of config/swarm.rb runs, a guess could stop the wrong one.
      # @param read [Boolean] whether to read a config file
      # @raise [UsageError] in that case
      def config_of_server(read: true)
        return load_config(flags, file: read) if !read || flags.last(:config_file) || !file?(Config::Loader::SWARM_FILE)
        return config_of_swarm unless file?(Config::Loader::DEFAULT_FILE)

        load_config(flags).tap { |config| refuse_to_guess if !flags.last(:control) && swarm_beside?(config) }
      end

      def load_config(flags, file: true) = Config.load(flags, env: terminal.env, dir: directory, file: file)

      def config_of_swarm = load_config(parse(["-c", Config::Loader::SWARM_FILE, *@arguments]))

      # @return [Boolean] false also if config/swarm.rb cannot be read here: then its nodes are elsewhere
      def swarm_beside?(config)
        require "pando/cli/control_client"
        socket = config_of_swarm.control
        socket && socket != config.control && ControlClient.listener?(socket)
      rescue ConfigError
        false
      end

      def refuse_to_guess
        files = [Config::Loader::DEFAULT_FILE, Config::Loader::SWARM_FILE]
        raise UsageError, "the server of #{files.last} runs in this folder, too: say which one you mean, with " \
                          "#{files.map { |file| "-c #{file}" }.join(" or ")}"
      end

      def file?(path) = File.file?(in_folder(path))

      # @param path [String] relative to the directory of the application
      def in_folder(path) = File.expand_path(path, File.expand_path(flags.last(:directory)&.text || ".", directory))

      # The environment of a command that suits another one than the server does. A flag, the config file or a variable
      # may name one all the same.
      def default_environment(name)
        return unless config.default?(:environment)

        @arguments = ["-e", name, *@arguments]
        @flags = @config = nil
      end

      # The directory as the user sees it, with symbolic links unresolved (pwd(1)): a link such as `current` may
      # lead to another release when the server is reloaded.
      def directory
        seen = terminal.env["PWD"].to_s
        folder = File.absolute_path?(seen) && File.identical?(seen, ".") ? seen : Dir.pwd
        folder.dup.force_encoding(Encoding::UTF_8)
      end

      def report_failure(reason)
        tell "pando: #{reason}"
        CLI::FAILED
      end

      # Progress and reasons, to stderr. If their reader, such as head(1), is gone, the command goes on: its exit status
      # tells the outcome.
      def tell(text)
        terminal.err.puts(text)
      rescue Errno::EPIPE
        nil
      end

      def other(name) = CLI.command(name).new([], terminal).call
    end
  end
end
