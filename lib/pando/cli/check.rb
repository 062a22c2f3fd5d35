# frozen_string_literal: true

require "pando/compat/notices"
require "pando/config"
require "pando/errors"
require "pando/http/reactor_spool"
require "pando/platform"
require "pando/server/app_environment"
require "pando/swarm/runners"

module Pando
  module CLI
    # The checks of `--check` beyond the settings themselves: what would keep the server from
    # starting, what has no effect, and what the server would warn of.
    class Check
      def initialize(config, env = ENV)
        @config = config
        @env = env
      end

      # @raise [ConfigError] the server could not start
      def call
        require "pando/native" # fails if the extension is missing
        @config.require_rackup
        require_folders
        @config.nodes.each { |kind| check_node(kind) }
        check_profiler if @config.first_request_profile
      end

      def notes = [*platform, *environment, *ignored, *without_reactor, *spool, *token, *heap]

      private

      def platform
        "note: this is #{Platform.name}, where Pando serves for development only (docs/macos.md)" unless Platform.linux?
      end

      # The server starts nevertheless, and its log says the same.
      def environment
        Server::AppEnvironment.new(@config, @env).contradiction&.then { |reason| "warning: #{reason}" }
      end

      # The same.
      def ignored
        Compat::Notices.new(@config, @env).ignored.map { |name, reason, advice| "warning: #{name}: #{reason} (#{advice})" }
      end

      def without_reactor
        return [] if @config.reactor

        idle = Config::Settings.groups.fetch("Reactor").map(&:name) - [:reactor]
        idle.reject { |name| @config.default?(name) }
            .map { |name| "note: #{name} (#{@config.source(name)}) has no effect with reactor false" }
      end

      # The server starts nevertheless, and its log says the same.
      def spool
        spool = HTTP::ReactorSpool.new(@config.spool)
        obstacle = spool.obstacle unless @config.workers.zero?
        return unless obstacle

        harm = [HTTP::ReactorSpool::NO_BODIES, *(HTTP::ReactorSpool::NO_ANSWERS if @config.reactor)].join(", and ")
        "warning: spool (#{@config.source(:spool)}): #{spool.path || "/tmp"} #{obstacle.delete_prefix("it ")}: " \
          "#{harm}. #{HTTP::ReactorSpool::ADVICE}"
      end

      # The server starts nevertheless, and refuses commands at the admin address.
      def token
        file = @config.admin_token_file
        variable = @config.admin_token_env
        return if @config.admin.empty? || !(file || variable)

        require "pando/admin/access"
        return if Admin::Access.new({ "token_file" => file, "token_env" => variable }).token

        place = file ? "admin token_file: #{file}" : "admin token_env: #{variable}"
        "warning: #{place} has no token of #{Admin::Access::LEAST} characters or more, so commands at the admin " \
          "address will be refused"
      end

      COMPACTION = /\A[^#]*\b(?:Process\.warmup|GC\.compact)\b/
      private_constant :COMPACTION

      def heap
        file = @config.config_file or return []
        name = @config.short(file)
        compactions(File.readlines(file, encoding: Encoding::UTF_8).map(&:scrub)).map do |row|
          "warning: #{name}:#{row + 1}: this runs before each fork, and makes memory private that the workers share. " \
            "Remove it: gc mold: :auto does it once in each mold"
        end
      end

      # The rows within a `before_fork`, whose block ends where the indentation says so.
      def compactions(lines)
        depth = nil
        lines.each_index.select do |row|
          line = lines[row]
          next if line.match?(/\A\s*(?:#|$)/)

          indent = line[/\A\s*/].size
          depth = (indent if line.match?(/\A\s*before_fork\b/)) if depth.nil? || indent <= depth
          depth && line.match?(COMPACTION)
        end
      end

      def require_folders
        sockets = %i[listen admin].flat_map do |setting|
          @config.public_send(setting).select { |listen| listen.kind == :unix }.map { |listen| [listen.path, setting] }
        end
        sockets << [@config.control, :control] if @config.control && !@config.default?(:control)
        [*sockets, *files].each do |path, setting|
          folder = File.dirname(path)
          refuse(setting, "there is no folder #{folder}. Create it first") unless File.directory?(folder)
        end
        path, setting = files.find { |file, _| File.directory?(file) }
        refuse(setting, "#{path} is a folder. Name a file") if path
      end

      def files
        files = { @config.access_log => :access_log, @config.slow_log && @config.slow_log_file => :slow_log_file,
                  @config.pidfile => :pidfile }
        files.except(nil, "-").to_a # standard output
      end

      def refuse(setting, reason)
        raise ConfigError, "#{@config.source(setting)}: #{setting}: #{reason}"
      end

      # Whether the nodes' gem and files exist. It does not load the application.
      def check_node(kind)
        check_library(kind) if kind.runner
        wrong = Pando::Swarm::RequiredFiles.trouble(kind, @config.directory)
        raise ConfigError, wrong if wrong
      end

      def check_profiler
        require "pando/telemetry/first_request"
        return if Telemetry::Profilers::ALL.any? { |profiler| found?(profiler::NAME, false) }

        refuse(:first_request_profile, "it needs a profiler: #{Telemetry::Profilers::ADVICE}")
      end

      # Gems of the application may be visible only after it is loaded, unless Bundler has already set up the load
      # path. Each runner has the name of its gem.
      def check_library(kind)
        gem = kind.runner.name
        wrong = ->(message) { raise ConfigError, "#{kind.source}: node :#{gem} #{message}" }
        wrong.call("needs require: also with shared: true") if kind.shared && kind.files.empty?
        in_rails = Pando::Config::NodeLine::IN_RAILS.include?(kind.runner)
        wrong.call("needs the application: require: \"./config/environment.rb\"") if in_rails && kind.files.empty?
        wrong.call("needs the gem #{gem}: add it to the Gemfile (bundle add #{gem})") unless found?(gem, in_rails)
      end

      def found?(gem, in_rails)
        return true if in_rails && !ENV.key?("BUNDLE_GEMFILE")

        $LOAD_PATH.resolve_feature_path(gem) || !defined?(Gem) || Gem::Specification.find_all_by_name(gem).any?
      end
    end
  end
end
