# frozen_string_literal: true

module Pando
  module HTTP
    # The settings that limit a client, read once per worker. Sizes in bytes, times in seconds.
    class Limits
      NAMES = %i[max_header_bytes max_target_bytes max_headers max_body_bytes body_memory spool
                 header_timeout body_timeout write_timeout timeout timeout_grace timeout_streaming
                 early_hints stream_bodies].freeze

      attr_reader(*NAMES)
      # @return [Float, nil] until the worker is killed
      attr_reader :hard_timeout
      # @return [Float] the longest wait for a client
      attr_reader :patience

      def initialize(config)
        NAMES.each { |name| instance_variable_set(:"@#{name}", config.public_send(name)) }
        @hard_timeout = timeout + timeout_grace if timeout
        @patience = [body_timeout, write_timeout].max
        freeze
      end

      # @return [Boolean] whether its body is streamed; by the reactor's rule
      def streamed?(path)
        stream_bodies.any? do |one|
          path.start_with?(one) && (path.size == one.size || one.end_with?("/") || path[one.size] == "/")
        end
      end
    end
  end
end
