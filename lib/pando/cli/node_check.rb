# frozen_string_literal: true

require "pando/config/runner_keywords"
require "pando/errors"
require "pando/swarm/runners"

module Pando
  module CLI
    # The checks of `--check` for one kind of job nodes: whether its gem and its files exist. It does not load the
    # application.
    #
    # @api private
    class NodeCheck
      # @param kind [Config::NodeKind] @param directory [String] of the server
      def initialize(kind, directory)
        @kind = kind
        @directory = directory
      end

      # @raise [ConfigError] the nodes could not start
      def call
        check_library if @kind.runner
        wrong = Pando::Swarm::RequiredFiles.trouble(@kind, @directory)
        raise ConfigError, wrong if wrong
      end

      private

      # Gems of the application may be visible only after it is loaded, unless Bundler has already set up the load
      # path.
      def check_library
        refuse("needs require: also with shared: true") if @kind.shared && @kind.files.empty?
        in_rails = Pando::Config::RunnerKeywords::IN_RAILS.include?(@kind.runner)
        refuse("needs the application: require: \"./config/environment.rb\"") if in_rails && @kind.files.empty?
        refuse("needs the gem #{gem}: add it to the Gemfile (bundle add #{gem})") unless found?(in_rails)
      end

      # Each runner has the name of its gem.
      def gem = @kind.runner.name

      def found?(in_rails)
        return true if in_rails && !ENV.key?("BUNDLE_GEMFILE")

        $LOAD_PATH.resolve_feature_path(gem) || !defined?(Gem) || Gem::Specification.find_all_by_name(gem).any?
      end

      def refuse(message) = raise(ConfigError, "#{@kind.source}: node :#{gem} #{message}")
    end
  end
end
