# frozen_string_literal: true

require "pando/swarm/runners"
require "pando/sys"

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
          def cancel = @consumers.each(&:cancel)

          # @return [Boolean] whether the broker was told; otherwise it takes the message back
          def settle(tag, how)
            how == :ack ? @channel.ack(tag) : @channel.reject(tag, how == :requeue)
            true
          rescue *BROKEN
            false
          end

          # In the queues, not yet delivered. Asks the broker.
          def waiting_messages
            @settings.queues.sum { |name| @channel.queue_declare(name, passive: true).message_count }
          end

          # Whether the broker takes back what is not settled.
          def broken? = @closed || !@error.nil?

          # Messages that are not settled go back into their queue.
          def close
            @closed = true
            @session.close
          rescue *BROKEN
            nil # RabbitMQ notices that the connection is gone
          ensure
            @session.transport&.close
          end

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

          # @api private
          # @return [Boolean] whether RabbitMQ delivers it again anyway, because its connection is broken
          def taken_back? = @connection.broken?

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

        # Keeps one {Connection} to RabbitMQ open until it is told to end. When the broker goes away it tries again,
        # later each time. It has one thread of its own, beside those of Bunny. Owned by the runner, in a node.
        class Subscription
          # Seconds between two counts of the waiting messages.
          COUNT_EVERY = 5
          # Seconds for a clean end, and again for threads that do not end by themselves.
          END_WITHIN = 8

          # @return [Integer, nil] messages that wait in the queues, some seconds old; nil: not known
          attr_reader :lag

          # @yieldreturn [Boolean] false: the message is not wanted any more
          def initialize(settings, node, &deliver)
            @settings = settings
            @name = "pando #{node}"
            @watch = BrokerWatch.new(node)
            @deliver = deliver
            @threads = ThreadTracker.new
            @lock = Mutex.new # protects the following
            @change = ConditionVariable.new
            @unwanted = []
            @quiet = @returned = @ended = false
          end

          # Returns when messages come, or when it is clear that the broker is down; then they come when it is back.
          # @raise [StandardError] the broker is up, and refuses us
          def start
            started = StartSignal.new
            @thread = @threads.start("bunny subscription") { keep_open(started) }
            started.wait
          end

          # Stops deliveries. Messages that were delivered and have not begun go back.
          def quiet(messages)
            update do
              @unwanted.concat(messages)
              @quiet = true
            end
          end

          # Messages that were delivered and are not settled go back.
          # @return [Boolean] whether none of its threads is left
          def stop
            update { @quiet = @ended = true }
            @thread&.join(END_WITHIN)
            @threads.kill_all(END_WITHIN)
          end

          # @return [Boolean] false: the thread is dead and will not connect again
          def alive? = @quiet || !!@thread&.alive?

          private

          # @param started [StartSignal] is set once it is clear how the first try went
          def keep_open(started)
            until @quiet
              error = serve(started)
              break started.set(error) unless started.set? || error.nil? || Connection.down?(error)

              started.set
              wait(@watch.lost(error)) { @quiet } if error
            end
          rescue Exception => e # rubocop:disable Lint/RescueException
            raise if started.set?

            started.set(e)
          end

          # @return [Exception, nil] why the connection is gone; nil: it was told to end
          def serve(started)
            connection = Connection.new(@settings, @name) { update }
            connection.open { |message| take(message) }
            started.set
            @watch.found
            watch(connection)
          rescue StandardError => e
            e
          ensure
            @lag = nil
            connection&.close
          end

          # Runs while the connection holds.
          def watch(connection)
            until @ended || connection.error
              return_unwanted(connection) if @quiet && !@returned
              @lag = count(connection) unless @quiet
              wait(COUNT_EVERY) { @ended || connection.error || (@quiet && !@returned) }
            end
            connection.error unless @ended
          end

          # @return [Integer, nil] nil: RabbitMQ is too busy to answer
          def count(connection)
            connection.waiting_messages
          rescue ::Timeout::Error
            nil
          end

          # In a thread of Bunny.
          def take(message)
            return if @deliver.call(message)

            late = @lock.synchronize { @returned || !(@unwanted << message) }
            message.requeue if late
          end

          # Only after the deliveries have ended: otherwise these messages would come again.
          def return_unwanted(connection)
            connection.cancel
            @lock.synchronize do
              @returned = true
              @unwanted.slice!(0..)
            end.each(&:requeue)
          end

          def update
            @lock.synchronize do
              yield if block_given?
              @change.broadcast
            end
          end

          # @yieldreturn [Boolean] whether there is no need to wait
          def wait(seconds)
            deadline = Sys.now + seconds
            @lock.synchronize do
              until yield || (left = deadline - Sys.now) <= 0
                @change.wait(@lock, left)
              end
            end
          end
        end
      end
    end
  end
end
