# frozen_string_literal: true

require "pando/cli/serve"

module Pando
  module CLI
    # `pando swarm`: becomes a server that runs only job nodes. It is `pando serve --workers 0`, with a config file of
    # its own if there is one.
    #
    # @api private
    class Swarm < Serve
      FILE = "config/swarm.rb"

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
        named || (Config::Loader::DEFAULT_FILE if File.file?(File.join(folder, Config::Loader::DEFAULT_FILE)))
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

        File.file?(File.join(folder, FILE)) ? ["--config", FILE] : []
      end

      def folder = File.expand_path(flags.last(:directory)&.text || ".", directory)
    end
  end
end
