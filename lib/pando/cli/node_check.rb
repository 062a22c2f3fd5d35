# frozen_string_literal: true

require "pando/config/runner_keywords"
require "pando/errors"
require "pando/swarm/runners"

module Pando
  module CLI
    # What `--check` sees of one kind of job nodes without loading the application: whether its gem and its files are
    # there.
    #
    # @api private
    class NodeCheck
      # @param kind [Config::NodeKind] @param directory [String] where the server is to run
      def initialize(kind, directory)
        @kind = kind
        @directory = directory
      end

      # @raise [ConfigError] it could not start
      def call
        check_library if @kind.runner
        wrong = Pando::Swarm::RequiredFiles.trouble(@kind, @directory)
        raise ConfigError, wrong if wrong
      end

      private

      # What comes with the application may be found only when that is loaded, unless Bundler has said already what
      # there is.
      def check_library
        refuse("needs require: with shared: true as well") if @kind.shared && @kind.files.empty?
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
