# frozen_string_literal: true

module Pando
  module HTTP
    # The settings as the reactor wants them (ext/pando/bind_reactor.c): seconds
    # and bytes, nil for no limit.
    #
    # Owned by {ReactorSetup}.
    #
    # @api private
    class ReactorSettings
      %i[max_header_bytes max_target_bytes max_headers max_body_bytes body_memory header_timeout body_timeout
         write_timeout idle_timeout queue_timeout max_connections max_connections_per_address max_queue
         retry_after stream_bodies proxy_protocol].each do |name|
        define_method(name) { @config.public_send(name) || nil }
      end

      # @param config [Config]
      def initialize(config)
        @config = config
      end

      def retry = @config.retry_requests

      # Of one connection.
      def max_requests = @config.max_keepalive_requests || nil
    end
  end
end
