# frozen_string_literal: true

require "pando/config"
require "pando/refork"
require "pando/server/launch"
require "pando/server/surroundings"

module Pando
  class Server
    # The configuration as it is now in the release folder, beside the one in use. Made by the monitor for
    # a reload, and either taken into use or given up.
    #
    # @api private
    class Renewal
      # What the monitor and the reactor have built at the start, and keep.
      AT_START = %i[listen control reactor].freeze
      OF_REACTOR = %i[max_target_bytes max_header_bytes max_headers max_body_bytes body_memory header_timeout
                      body_timeout write_timeout idle_timeout queue_timeout max_queue max_connections
                      max_connections_per_address max_keepalive_requests retry_after retry_requests
                      stream_bodies health health_live].freeze

      # @return [Config]
      attr_reader :config

      # @param old [Config] in use
      # @param first [Config] that the server was started with
      # @raise [ConfigError] the new one is wrong
      # @raise [SystemCallError] the release folder is gone
      def initialize(old, first)
        @old = old
        @first = first
        @surroundings = Surroundings.enter(old.directory)
        @config = Config.load(old.argv).tap(&:require_rackup)
      rescue StandardError
        give_up
        raise
      rescue SystemExit => e # at a start it ends the server; one that serves already is not the file's to end
        give_up
        raise ConfigError, "the configuration ends its process: #{e.message}, #{e.backtrace&.first}"
      end

      # @return [Array<String>] what becomes the new release's mold
      def command = Launch.command(config)

      def policy = Refork.policy(config.refork)

      # @return [Integer, nil] workers, if the new configuration wants another number than the old one did
      def workers = (config.workers unless config.workers == @old.workers)

      # @return [Array<Symbol>] settings that are not what the server was started with, and need a restart
      def kept
        [*AT_START, *(OF_REACTOR if @first.reactor)].reject { |name| same?(name) }
      end

      # Back to where the old release is.
      def give_up
        @surroundings&.leave
      end

      private

      def same?(name)
        @first.public_send(name) == config.public_send(name)
      end
    end
  end
end
