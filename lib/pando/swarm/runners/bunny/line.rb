# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Bunny
        # One connection to RabbitMQ with one channel and a consumer for each queue. When it breaks it stays broken, and
        # another one is made.
        #
        # Bunny's own recovery is not used: it ends its consumers' threads where they stand, in the middle of a job, and
        # from 3.0 on an acknowledgement of before the break could settle another message, for delivery tags begin anew.
        #
        # Owned by a {Link}, in a node.
        #
        # @api private
        class Line
          OPTIONS = { automatically_recover: false, recover_from_connection_close: false }.freeze
          # What says that nobody is there just now, rather than that we are not wanted.
          ABSENT = [::Bunny::TCPConnectionFailed, ::Bunny::NetworkFailure, ::Bunny::ConnectionForced,
                    ::Bunny::ConnectionClosedError, ::Timeout::Error, SystemCallError, IOError].freeze
          # What becomes of a farewell, or of an answer, when the line is broken. Bunny's own are StandardErrors.
          BROKEN = [::Bunny::Exception, ::Timeout::Error, SystemCallError, IOError].freeze

          # Bunny tells it of a broken connection, as it would a Thread.
          Breaker = Struct.new(:broken) do
            def raise(error, *) = broken.call(error)
          end

          def self.absent?(error) = ABSENT.any? { |one| error.is_a?(one) }

          # @return [Exception, nil] why it is broken
          attr_reader :error

          # @param settings [Settings] @param name [String] that RabbitMQ shows
          # @yield when it is broken, in a thread of Bunny
          def initialize(settings, name, &news)
            @settings = settings
            @news = news
            handler = Breaker.new(method(:break))
            ours = { **OPTIONS, connection_name: name, session_error_handler: handler }
            @session = ::Bunny.new(*settings.connection(ours))
          end

          # In a thread of the pen that Bunny's threads are to be in.
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

          # No more deliveries after it has returned.
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

          # @return [Integer] messages in the queues that nobody has been given; asks the broker
          def waiting
            @settings.queues.sum { |name| @channel.queue_declare(name, passive: true).message_count }
          end

          # What is not settled goes back into its queue.
          def close
            @session.close
          rescue *BROKEN
            nil # RabbitMQ notices it by itself
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
