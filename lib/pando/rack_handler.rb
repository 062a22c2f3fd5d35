# frozen_string_literal: true

require "rbconfig"

module Pando
  # The Rack handler: `rackup -s pando` and `bin/rails server` start the server through it. It replaces the calling
  # process by Pando's executable, because the monitor must not load the application: a worker loads it.
  #
  #     Rackup::Handler.get("pando").run(app, Host: "127.0.0.1", Port: 9292)
  module RackHandler
    LIBRARY = File.expand_path("..", __dir__)
    PROGRAM = File.expand_path("../../exe/pando", __dir__)
    # Whether a worker also writes Rails' log to the terminal: "1" or "0". If it is not set, the environment decides.
    LOG_TO_STDOUT = "PANDO_RAILS_LOG_TO_STDOUT"
    # A host and port in the form of Puma's `bind`.
    ADDRESS = %r{\A[a-z]+://.*:\d+(?:\?|\z)}
    private_constant :ADDRESS

    class << self
      # Replaces this process with the server.
      #
      # @param _app [#call, nil] not used: the workers load the rackup file
      # @param options [Hash{Symbol => Object}] of Rackup::Server or Rails::Server
      # @return never
      # @raise [ArgumentError] the app is the caller's own
      def run(_app = nil, **options)
        if options[:app] || options[:builder]
          raise ArgumentError, "Pando cannot serve an app object, because its workers load the app from a rackup " \
                               "file: write one, or choose another server"
        end

        [$stdout, $stderr].each(&:flush)
        exec(environment(options), RbConfig.ruby, *load_path, PROGRAM, *arguments(options))
      end

      # @return [Hash{String => String}] for `rackup --help`
      def valid_options
        { "Host=HOST" => "Hostname to listen on, or unix:PATH (default: localhost)",
          "Port=PORT" => "Port to listen on (default: 9292)",
          "Workers=N" => "Number of workers (default: 1 in development, else one for each CPU)" }
      end

      # @return [String] the name that `bin/rails server` prints
      def to_s = "Pando"

      # @param options [Hash{Symbol => Object}]
      # @return [Array<String>] the command line
      # @api private
      def arguments(options)
        [*listen(options), *flag("-e", options, :environment), *flag("--pidfile", options, :pid),
         *(["-w", options[:Workers].to_s] if options[:Workers]), *early_hints(options[:early_hints]),
         *rackup_file(options[:config])]
      end

      # @param options [Hash{Symbol => Object}]
      # @return [Hash{String => String, nil}] changes to the environment; nil: the variable is removed
      # @api private
      def environment(options, env: ENV)
        variables = rails_variables(options).compact
        variables["RACK_ENV"] = nil if rackups_default?(options) && !env.fetch("RAILS_ENV", nil).to_s.empty?
        variables
      end

      private

      def rails_variables(options)
        variables = {}
        variables[LOG_TO_STDOUT] = log_to_stdout(options) if options.key?(:log_stdout)
        # Leaves out Rails' default, so that a config file can override it; a config file cannot override a flag.
        variables["PIDFILE"] = options[:pid] if options[:pid] && !chosen?(options, :pid)
        variables
      end

      # Rackup sets RACK_ENV to its default. Whether its user has asked for that with -E can no longer be seen.
      def rackups_default?(options) = !options[:user_supplied_options] && options[:environment] == "development"

      # Rails says which options its user has chosen. Options from Rackup count as chosen.
      def chosen?(options, name)
        return options[:user_supplied_options].include?(name) if options[:user_supplied_options]

        name != :environment # Rackup sets RACK_ENV itself
      end

      def flag(name, options, key)
        [name, options[key].to_s] if options[key] && chosen?(options, key)
      end

      def listen(options)
        return unless %i[Host Port].any? { |name| options[name] && chosen?(options, name) }

        host = options[:Host].to_s
        return ["--listen", host.sub("unix://", "unix:")] if host.start_with?("unix:")

        return ["--listen", host] if host.match?(ADDRESS)

        ["--listen", "#{bracketed(host)}:#{options[:Port] || 9292}"]
      end

      def bracketed(host)
        return "127.0.0.1" if ["", "localhost"].include?(host)

        host.include?(":") && !host.match?(%r{\A\[|://}) ? "[#{host}]" : host
      end

      # Nil unless the user has chosen.
      def early_hints(wanted) = (["--early-hints", wanted.to_s] unless wanted.nil?)

      def rackup_file(path)
        [path] if path && File.expand_path(path) != File.expand_path("config.ru")
      end

      def log_to_stdout(options)
        return "1" if options[:log_stdout]

        "0" if options[:environment] == "development" # Rails' default in development is to log to the terminal
      end

      # The extension of an installed gem may be in a separate folder.
      def load_path
        folders = defined?(Gem) && Gem.loaded_specs["pando"]&.full_require_paths
        (folders || [LIBRARY]).flat_map { |folder| ["-I", folder] }
      end
    end
  end
end
