# frozen_string_literal: true

require "pando/cli/node_check"
require "pando/config"
require "pando/http/reactor_spool"
require "pando/platform"

module Pando
  module CLI
    # The checks of `--check` beyond the settings themselves: what would keep the server from
    # starting, what has no effect, and what the server would warn of.
    #
    # @api private
    class Check
      # @param config [Config]
      def initialize(config)
        @config = config
      end

      # @raise [ConfigError] the server could not start
      def call
        require "pando/native" # fails if the extension is missing
        @config.require_rackup
        require_folders
        @config.nodes.each { |kind| NodeCheck.new(kind, @config.directory).call }
      end

      # @return [Array<String>] one line each
      def notes = [*platform, *without_reactor, *spool]

      private

      def platform
        "note: this is #{Platform.name}, where Pando serves for development only (docs/macos.md)" unless Platform.linux?
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

      def require_folders
        sockets = @config.listen.select { |listen| listen.kind == :unix }.map { |listen| [listen.path, :listen] }
        sockets << [@config.control, :control] if @config.control && !@config.default?(:control)
        path, setting = sockets.find { |file, _| !File.directory?(File.dirname(file)) }
        return unless path

        raise ConfigError, "#{@config.source(setting)}: #{setting}: there is no folder #{File.dirname(path)}. " \
                           "Create it first"
      end
    end
  end
end
