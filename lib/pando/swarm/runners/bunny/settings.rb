# frozen_string_literal: true

require "pando/errors"
require "pando/swarm/runners/bunny/sneakers_consumer"

module Pando
  module Swarm
    module Runners
      class Bunny
        # The keywords of the `node` line that concern RabbitMQ. Made in a node.
        #
        # @api private
        class Settings
          # In seconds and in milliseconds. A Hash as `connection:` overrides them. Pando reports by events what Bunny
          # would log.
          DEFAULTS = { connection_timeout: 5, continuation_timeout: 5000, log_file: $stderr, log_level: :fatal }.freeze

          # @return [Integer] how many unacknowledged messages of each queue RabbitMQ gives to a node
          attr_reader :prefetch
          # @return [Symbol] :reject or :requeue: what happens to a message whose consumer raises
          attr_reader :on_error
          # @return [Array<String>]
          attr_reader :queues

          # @param node [Node]
          def initialize(node)
            options = node.options
            @named = options.fetch(:consumer)
            @queues = node.queues
            @prefetch = options.fetch(:prefetch, node.concurrency)
            @on_error = options.fetch(:on_error, :reject)
            @connection = options[:connection]
            @declare = options[:declare]
          end

          # @param ours [Hash{Symbol => Object}] options that the user cannot override
          # @return [Array] arguments for Bunny.new; without `connection:` it uses RABBITMQ_URL
          def connection(ours)
            return [DEFAULTS.merge(@connection), ours] if @connection.is_a?(Hash)

            [@connection || ENV.fetch("RABBITMQ_URL", nil), DEFAULTS.merge(ours)]
          end

          # Runs on each new connection, before its first message.
          # @param channel [::Bunny::Channel]
          def declare(channel)
            SneakersConsumer.declare(channel, consumer, @queues) if SneakersConsumer.for?(consumer)
            consumer.declare(channel) if consumer.respond_to?(:declare)
            @queues.each { |name| channel.queue(name, **@declare) } if @declare
          end

          # @return [#call] for one message: a class gives a new object for each
          def handler
            return SneakersConsumer.new(consumer) if SneakersConsumer.for?(consumer)

            consumer.is_a?(Class) ? consumer.new : consumer
          end

          # @return [Class, #call]
          # @raise [NameError]
          def consumer
            @consumer ||= @named.is_a?(String) ? Object.const_get(@named) : @named
          end
        end
      end
    end
  end
end
