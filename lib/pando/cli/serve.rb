# frozen_string_literal: true

require "pando/cli/command"
require "pando/wording"

module Pando
  module CLI
    # `pando serve`: becomes the server. With --check it only checks whether the server could start.
    class Serve < Command
      include Wording

      CHECK = Switch.new(name: :check, flags: %w[--check],
                         help: "Only check the settings, and the files, folders and gems that they name.").freeze

      def self.switches = [CHECK]

      private

      def perform
        return check if flags[:check]

        Platform.linux? ? monitor.run : plain.run
      end

      # During an upgrade this process already is the monitor of a running cluster: then StartMode handles an error.
      def monitor
        require "pando/server/reexec_without_gems"
        Server::Origin.note(directory)
        Server::ReexecWithoutGems.enter(@arguments) { require_rackup && config }
        Dir.chdir(config.directory)
        require "pando/server"
        Server.new(config).prepare
      rescue Exception => e # rubocop:disable Lint/RescueException
        require "pando/server/start_mode"
        Server::StartMode.refuse(e)
        raise
      end

      def plain
        require_rackup
        require "pando/plain_server"
        PlainServer.new(config, terminal.err)
      end

      def require_rackup
        config.require_rackup
      rescue ConfigError => e
        word = flags.words.first
        refuse_order(word) if misplaced?(word)
        hint = Compat::Names::COMMANDS[word]
        raise UsageError, "there is no command #{word}. #{hint}" if hint
        raise e unless (near = mistyped_command)

        raise UsageError, "there is neither a command nor a rackup file #{@arguments.first}. Did you mean #{near}?"
      end

      # `pando -C /srv/app status --format json` fails at a flag that is not one of `pando serve`.
      def flags
        super
      rescue UsageError
        word = (@arguments & COMMANDS.keys).first
        misplaced?(word) ? refuse_order(word) : raise
      end

      def misplaced?(word) = COMMANDS.key?(word) && @arguments.first.start_with?("-")

      def refuse_order(word)
        raise UsageError, "the command comes first: #{["pando", word, *(@arguments - [word])].join(" ")}"
      end

      # If the first argument is not a file, it may be a mistyped command.
      def mistyped_command
        word = @arguments.first
        Suggestion.nearest(word, COMMANDS.keys) if word&.match?(/\A[a-z]+\z/)
      end

      def check
        require "pando/cli/check"
        require_rackup
        check = Check.new(config)
        check.call
        tell(check.notes)
        say_ok
      end

      def say_ok
        file = config.short(config.config_file) || "no config file"
        terminal.out.puts "OK: #{[file, *served, *pools, *nodes].join(", ")}"
        CLI::OK
      end

      def served
        return if config.workers.zero?

        [config.short(config.rackup), counted(config.workers, "worker"), config.listen.join(" ")]
      end

      def pools
        "pools: #{config.pools.map { |pool| "#{pool.config.workers} #{pool.name}" }.join(" + ")}" if config.pools.any?
      end

      def nodes
        "nodes: #{config.nodes.map { |kind| "#{kind.count} #{kind.name}" }.join(" + ")}" if config.nodes.any?
      end
    end

    # `pando swarm`: becomes a server that runs only job nodes. It is `pando serve --workers 0`, with a config file of
    # its own if there is one.
    class Swarm < Serve
      FILE = Config::Loader::SWARM_FILE

      def initialize(arguments, terminal)
        super
        return if flags[:help] || flags[:version]

        refuse_words
        refuse_workers
        @arguments = [*arguments, *file, "--workers", "0"]
        @flags = nil
      end

      private

      # The user did not ask for 0 workers, so the message must not mention them.
      def config
        super
      rescue Config::NothingToRun
        raise ConfigError, "there is no #{FILE} and no #{Config::Loader::DEFAULT_FILE}" unless (file = chosen)

        raise ConfigError, "#{file} has no node line, such as `node :sidekiq`: nothing to run"
      end

      def chosen
        named = flags.last(:config_file)&.text
        named || (Config::Loader::DEFAULT_FILE if file?(Config::Loader::DEFAULT_FILE))
      end

      def refuse_words
        word = flags.words.first or return
        raise UsageError, "pando swarm takes no argument #{word.inspect}. To name a config file: pando swarm -c FILE"
      end

      def refuse_workers
        workers = flags.last(:workers) or return
        return if workers.text == "0"

        raise UsageError, "#{workers.flag}: pando swarm has no workers that serve requests. Set the number of nodes " \
                          "with `count:` on the `node` line"
      end

      def file
        return [] if flags.last(:config_file)

        file?(FILE) ? ["--config", FILE] : []
      end
    end
  end
end
