# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Bunny
        # One connection to RabbitMQ, with one channel and a consumer for each queue. A broken line stays broken;
        # another one replaces it.
        #
        # Bunny's own recovery is not used. It ends its consumers' threads in the middle of a job. From 3.0 on, an
        # acknowledgement from before the break could also settle a different message, because delivery tags start
        # again.
        #
        # Owned by a {Link}, in a node.
        #
        # @api private
        class Line
          OPTIONS = { automatically_recover: false, recover_from_connection_close: false }.freeze
          # Errors that mean that the broker is down, and not that it refuses us.
          ABSENT = [::Bunny::TCPConnectionFailed, ::Bunny::NetworkFailure, ::Bunny::ConnectionForced,
                    ::Bunny::ConnectionClosedError, ::Timeout::Error, SystemCallError, IOError].freeze
          # Errors that may come up while a broken line is closed or used. Bunny's own are StandardErrors.
          BROKEN = [::Bunny::Exception, ::Timeout::Error, SystemCallError, IOError].freeze

          # Bunny reports a broken connection to it, as it would to a Thread.
          Breaker = Struct.new(:broken) do
            def raise(error, *) = broken.call(error)
          end

          def self.absent?(error) = ABSENT.any? { |one| error.is_a?(one) }

          # @return [Exception, nil] why the line is broken
          attr_reader :error

          # @param settings [Settings] @param name [String] the name of the connection in RabbitMQ
          # @yield when the line is broken, in a thread of Bunny
          def initialize(settings, name, &news)
            @settings = settings
            @news = news
            handler = Breaker.new(method(:break))
            ours = { **OPTIONS, connection_name: name, session_error_handler: handler }
            @session = ::Bunny.new(*settings.connection(ours))
          end

          # Call it in a thread of the pen, so that Bunny's threads are in the pen too.
          # @yieldparam message [Message]
          # @raise [::Bunny::Exception, SystemCallError, IOError, Timeout::Error]
          def open(&deliver)
            @session.start
            @channel = @session.create_channel
            @channel.prefetch(@settings.prefetch)
            @channel.on_error { |_, close| self.break(::Bunny::NetworkFailure.new(close.reply_text, nil)) }
            @settings.declare(@channel)
            @consumers = @settings.queues.map { |queue| consume(queue, deliver) }
            self
          end

          # No delivery comes after it has returned.
          def cancel
            @consumers.each(&:cancel)
          end

          # @return [Boolean] whether the broker was told; otherwise it takes the message back
          def settle(tag, how)
            how == :ack ? @channel.ack(tag) : @channel.reject(tag, how == :requeue)
            true
          rescue *BROKEN
            false
          end

          # @return [Integer] messages in the queues that have not been delivered; asks the broker
          def waiting
            @settings.queues.sum { |name| @channel.queue_declare(name, passive: true).message_count }
          end

          # Messages that are not settled go back into their queue.
          def close
            @session.close
          rescue *BROKEN
            nil # RabbitMQ notices that the connection is gone
          ensure
            @session.transport&.close
          end

          # @param error [Exception]
          def break(error)
            @error ||= error
            @news.call
          end

          private

          def consume(queue, deliver)
            consumer = ::Bunny::Consumer.new(@channel, queue, @channel.generate_consumer_tag, false)
            consumer.on_cancellation { self.break(::Bunny::NetworkFailure.new("the queue #{queue} is gone", nil)) }
            consumer.on_delivery do |info, properties, payload|
              deliver.call(Message.new(self, queue, info, properties, payload))
            end
            @channel.basic_consume_with(consumer)
            consumer
          end
        end
      end
    end
  end
end
