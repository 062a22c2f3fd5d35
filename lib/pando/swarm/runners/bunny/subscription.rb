# frozen_string_literal: true

require "pando/swarm/broker_watch"
require "pando/swarm/runners/bunny/connection"
require "pando/swarm/runners/bunny/threads"
require "pando/swarm/start_signal"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Bunny
        # Keeps one {Connection} to RabbitMQ open until it is told to end. When the broker goes away it tries again,
        # later each time. It has one thread of its own, beside those of Bunny. Owned by the runner, in a node.
        #
        # @api private
        class Subscription
          # Seconds between two counts of the waiting messages.
          COUNT_EVERY = 5
          # Seconds for a clean end, and again for threads that do not end by themselves.
          END_WITHIN = 8

          # @return [Integer, nil] messages that wait in the queues, some seconds old; nil: not known
          attr_reader :lag

          # @param settings [Settings] @param node [Node]
          # @yieldparam message [Message]
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
          # @param messages [Array<Message>] messages that have not begun
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
          # @return [Exception, nil]
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

          # @param seconds [Numeric] at most
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
