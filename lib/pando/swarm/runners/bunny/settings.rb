# frozen_string_literal: true

require "pando/errors"

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

        # A Sneakers (or Kicks) worker class as a consumer: the result of its `work` settles the message. Sneakers'
        # middlewares and metrics run. Its handlers (Maxretry and the like) do not: they need a channel of their own.
        #
        # Used by the threads that run jobs, in a node.
        #
        # @api private
        class SneakersConsumer
          # A Sneakers worker gets this instead of a thread pool: nothing that is used here needs one.
          NO_POOL = Object.new.freeze

          # Has the methods of a Sneakers handler.
          Handler = Struct.new(:message) do
            def acknowledge(*) = message.ack
            def reject(_info, _properties, _payload, again = nil) = again ? message.requeue : message.reject
            def error(_info, _properties, _payload, error) = raise(error)
            def noop(*) = raise(TypeError, "work must end with ack!, reject! or requeue!")
          end

          # @return [Boolean]
          def self.for?(consumer)
            defined?(::Sneakers::Worker) && consumer.is_a?(Class) && consumer.include?(::Sneakers::Worker)
          end

          # Declares queues, their exchange and bindings as Sneakers' configuration says.
          # @param channel [::Bunny::Channel] @param queues [Array<String>]
          def self.declare(channel, worker_class, queues)
            options = worker_class.new(nil, NO_POOL).opts
            exchange = options[:exchange]
            exchange = exchange.empty? ? nil : channel.exchange(exchange, **options[:exchange_options])
            queues.each do |name|
              queue = channel.queue(name, **options[:queue_options])
              [*options[:routing_key] || name].each { |key| queue.bind(exchange, routing_key: key) } if exchange
            end
          end

          def initialize(worker_class)
            @worker = worker_class.new(nil, NO_POOL, ack: true)
          end

          # @param message [Message]
          def call(message)
            @worker.process_work(message.delivery_info, message.properties, message.payload, Handler.new(message))
          end
        end
      end
    end
  end
end
