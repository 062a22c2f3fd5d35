# frozen_string_literal: true

require "rbconfig"
require "pando/server/launch"
require "pando/server/origin"

module Pando
  class Server
    # The monitor shares no page with the mold, so all that it carries is paid
    # for in full, and of a fresh Ruby that `bundle exec` has started half is
    # RubyGems and Bundler. It needs neither. Before it opens anything it
    # executes itself again without them: same process, same arguments, same
    # configuration. A configuration that turns out to need a gem after all is
    # given the full image back.
    #
    # @api private
    module ReexecWithoutGems
      # Set in the image without gems: what RUBYOPT was, for those that it starts.
      DONE = "PANDO_SLIM"
      # Set in the image that was given its gems back.
      FULL = "PANDO_FULL"
      FEATURES = ["gems", "did_you_mean", "error_highlight", ("syntax_suggest" if RUBY_VERSION >= "3.2"),
                  ("yjit" if defined?(RubyVM::YJIT))].compact.freeze
      PROGRAM = File.expand_path("../../../exe/pando", __dir__)
      # The user's code that runs in the monitor may want gems when its time comes.
      MONITOR_HOOKS = %i[after_monitor_ready after_worker_exit after_worker_hard_timeout].freeze

      class << self
        # Returns in the image that is to be the monitor.
        #
        # @param argv [Array<String>] of the command
        # @yieldreturn [Config]
        # @return [Config]
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

        def worth?(config)
          defined?(Gem) && config.subscriptions.empty? && MONITOR_HOOKS.none? { |name| config.hooks.any?(name) }
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
