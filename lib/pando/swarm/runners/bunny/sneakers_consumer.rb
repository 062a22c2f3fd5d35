# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Bunny
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
            unless options[:exchange].empty?
              exchange = channel.exchange(options[:exchange],
                                          **options[:exchange_options])
            end
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
