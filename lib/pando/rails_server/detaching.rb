# frozen_string_literal: true

require "pando/config"
require "pando/platform"
require "pando/rack_handler"

module Pando
  module RailsServer
    # What would keep a server from starting is found while its user still sees it: a process that has detached from
    # the terminal has nowhere to say so. `bin/rails server -d` asks before it detaches.
    #
    # @api private
    class Detaching
      def initialize(options, env: ENV, directory: Dir.pwd)
        @options = options
        @env = env.to_h.merge(RackHandler.environment(options))
        @directory = directory
      end

      # @raise [BootError] an address or the pidfile cannot be had
      # @raise [ConfigError] the configuration is wrong
      def check
        config = Config.load(RackHandler.arguments(@options), env: @env, dir: @directory)
        return unless Platform.linux?

        require "pando/cluster"
        require "pando/cluster/listening/listeners"
        require "pando/cluster/pid_file"
        Cluster::PidFile.new(config.pidfile).claim.release
        config.listen.each { |listen| try(listen) }
      end

      private

      # What a service manager has opened is not ours to try.
      def try(listen)
        Cluster::Listening::OwnListener.open(listen, 0).close unless listen.kind == :systemd
      end
    end
  end
end
