# frozen_string_literal: true

require "pando/http/reactor_spool"

module Pando
  module HTTP
    # The settings as the reactor wants them (ext/pando/bind_reactor.c): seconds
    # and bytes, nil for no limit.
    #
    # Owned by {ReactorSetup}.
    #
    # @api private
    class ReactorSettings
      %i[max_header_bytes max_target_bytes max_headers max_body_bytes body_memory answer_memory
         answer_memory_total spool_total buffer_memory header_timeout body_timeout
         write_timeout idle_timeout queue_timeout max_connections_per_address max_queue
         retry_after stream_bodies].each do |name|
        define_method(name) { @config.public_send(name) || nil }
      end

      # Descriptors that the reactor needs beside its connections': those of lanes, of
      # large bodies, and of clients who are just being told that there are too many.
      RESERVE = 256
      BODIES = 8 # one for so many connections

      # @param config [Config]
      # @param descriptors [Integer] that the reactor may open
      # @param spool [ReactorSpool]
      def initialize(config, descriptors: Process.getrlimit(:NOFILE).last, spool: ReactorSpool.new(config.spool))
        @config = config
        @spool = spool
        @room = [(descriptors - RESERVE) * BODIES / (BODIES + 1), descriptors / 2].max
      end

      # @return [Integer] as many as are wanted, and as there are descriptors for
      def max_connections = [@config.max_connections, @room].min

      # @return [Boolean] whether the limit of open files allows what the config wants
      def enough_descriptors? = @config.max_connections <= @room

      def spool_in_memory = @spool.memory?
      def retry = @config.retry_requests

      def ready_path = @config.health
      def live_path = @config.health_live

      # Of one connection.
      def max_requests = @config.max_keepalive_requests || nil
    end
  end
end
