# frozen_string_literal: true

require "rbconfig"
require "pando/server/launch"

module Pando
  class Server
    # Executes the monitor again without RubyGems and Bundler, which it does not need: they are half of the memory of a
    # fresh Ruby under `bundle exec`, and the monitor shares no memory with the mold. It happens before the monitor
    # opens anything; process, arguments and configuration stay the same. If the configuration turns out to need a gem,
    # the monitor executes itself with gems again.
    module ReexecWithoutGems
      # Set in the image without gems: the former RUBYOPT, for the processes that it starts.
      DONE = "PANDO_SLIM"
      # Set in the image that has its gems again.
      FULL = "PANDO_FULL"
      FEATURES = ["gems", "did_you_mean", "error_highlight", ("syntax_suggest" if RUBY_VERSION >= "3.2"),
                  ("yjit" if defined?(RubyVM::YJIT))].compact.freeze
      PROGRAM = File.expand_path("../../../exe/pando", __dir__)

      class << self
        # Returns in the image that is to be the monitor.
        def enter(argv)
          restore_options if (slim = ENV.key?(DONE))
          config = yield
          exec(environment, *command(FEATURES, config.argv)) if !slim && !ENV.delete(FULL) && worth?(config)
          config
        rescue ConfigError
          raise unless slim

          exec({ FULL => "1", **Origin.noted.environment }, *command([], argv))
        end

        private

        def restore_options
          options = ENV.delete(DONE)
          ENV["RUBYOPT"] = options unless options.empty?
        end

        # Hooks in the monitor may need gems.
        def worth?(config)
          defined?(Gem) && config.subscriptions.empty? && Hooks::OF_MONITOR.none? { |name| config.hooks.any?(name) }
        end

        def environment
          options = [ENV.fetch("RUBYOPT", nil), *Launch.jit].compact.join(" ")
          { DONE => options, "RUBYOPT" => nil }.merge(Origin.noted.environment)
        end

        def command(features, argv)
          [RbConfig.ruby, *features.map { |name| "--disable=#{name}" }, *Launch.load_path, PROGRAM, *argv]
        end
      end
    end
  end
end
