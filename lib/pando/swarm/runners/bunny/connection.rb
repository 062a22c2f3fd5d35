# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Bunny
        # One connection to RabbitMQ, with one channel and a consumer for each queue. Once it is broken, another one
        # replaces it.
        #
        # Bunny's own recovery is not used. It ends its consumers' threads in the middle of a job. From 3.0 on, an
        # acknowledgement from before the break could also settle a different message, because delivery tags start
        # again.
        #
        # Owned by a {Subscription}, in a node.
        #
        # @api private
        class Connection
          OPTIONS = { automatically_recover: false, recover_from_connection_close: false }.freeze
          # Errors that mean that the broker is down, and not that it refuses us.
          DOWN = [::Bunny::TCPConnectionFailed, ::Bunny::NetworkFailure, ::Bunny::ConnectionForced,
                  ::Bunny::ConnectionClosedError, ::Timeout::Error, SystemCallError, IOError].freeze
          # Errors that may come up while a broken connection is closed or used. Bunny's own are StandardErrors.
          BROKEN = [::Bunny::Exception, ::Timeout::Error, SystemCallError, IOError].freeze

          # Bunny reports a broken connection to it, as it would to a Thread.
          ErrorHandler = Struct.new(:broken) do
            def raise(error, *) = broken.call(error)
          end

          def self.down?(error) = DOWN.any? { |one| error.is_a?(one) }

          # @return [Exception, nil] why the connection is broken
          attr_reader :error

          # @param settings [Settings] @param name [String] the name of the connection in RabbitMQ
          # @yield when the connection is broken, in a thread of Bunny
          def initialize(settings, name, &on_break)
            @settings = settings
            @on_break = on_break
            handler = ErrorHandler.new(method(:break))
            ours = { **OPTIONS, connection_name: name, session_error_handler: handler }
            @session = ::Bunny.new(*settings.connection(ours))
          end

          # Call it in a tracked thread, so that Bunny's threads are tracked too.
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
          def waiting_messages
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
            @on_break.call
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

        # The message that a consumer gets from RabbitMQ, and the ways to settle it. Only the first of ack, reject and
        # requeue counts. Without any, Pando acknowledges the message when the consumer returns.
        #
        # Lives in a node. It is settled on the connection that it came by. If that is broken, RabbitMQ has
        # taken the message back already and delivers it again.
        class Message
          # @return [String]
          attr_reader :payload
          # @return [::Bunny::DeliveryInfo] routing_key, exchange, redelivered? and more
          attr_reader :delivery_info
          # @return [::Bunny::MessageProperties] content_type, headers, message_id and more
          attr_reader :properties
          # @return [String] the message's queue
          attr_reader :queue

          # @api private
          # @param connection [Connection] the connection that it came by
          def initialize(connection, queue, delivery_info, properties, payload)
            @connection = connection
            @queue = queue
            @delivery_info = delivery_info
            @properties = properties
            @payload = payload
          end

          # @return [Boolean] whether it was delivered before, for instance to a node that was killed
          def redelivered? = @delivery_info.redelivered?

          # The message is done.
          # @return [Boolean] whether RabbitMQ was told; the same for the other two
          def ack = settle(:ack)

          # RabbitMQ dead-letters the message if the queue says where to, and drops it otherwise.
          def reject = settle(:reject)

          # Puts the message back into the queue, near its old place.
          def requeue = settle(:requeue)

          # @return [Symbol, nil] :ack, :reject or :requeue, once it is settled
          attr_reader :settled

          def inspect = "#<#{self.class} #{queue} #{payload.bytesize} bytes #{settled || "unsettled"}>"

          private

          def settle(how)
            return false if @settled

            @settled = how
            @connection.settle(@delivery_info.delivery_tag, how)
          end
        end
      end
    end
  end
end
