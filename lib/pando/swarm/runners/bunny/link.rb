# frozen_string_literal: true

require "pando/swarm/broker_watch"
require "pando/swarm/first_word"
require "pando/swarm/runners/bunny/line"
require "pando/swarm/thread_pen"

module Pando
  module Swarm
    module Runners
      class Bunny
        # Keeps one {Line} to RabbitMQ open until it is told to end. When the broker goes away it tries again, later
        # each time. It has one thread of its own, beside those of Bunny. Owned by the runner, in a node.
        #
        # @api private
        class Link
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
            @pen = ThreadPen.new
            @lock = Mutex.new # protects the following
            @news = ConditionVariable.new
            @unwanted = []
            @quiet = @returned = @ended = false
          end

          # Returns when messages come, or when it is clear that the broker is down; then they come when it is back.
          # @raise [StandardError] the broker is up, and refuses us
          def start
            first = FirstWord.new
            @thread = @pen.start("bunny link") { keep_open(first) }
            first.wait
          end

          # Stops deliveries. Messages that were delivered and have not begun go back.
          # @param messages [Array<Message>] messages that have not begun
          def quiet(messages)
            tell do
              @unwanted.concat(messages)
              @quiet = true
            end
          end

          # Messages that were delivered and are not settled go back.
          # @return [Boolean] whether none of its threads is left
          def stop
            tell { @quiet = @ended = true }
            @thread&.join(END_WITHIN)
            @pen.clear(END_WITHIN)
          end

          # @return [Boolean] false: the thread is dead and will not connect again
          def alive? = @quiet || !!@thread&.alive?

          private

          # @param first [FirstWord] is told once how the first try went
          def keep_open(first)
            until @quiet
              error = serve(first)
              break first.say(error) unless first.said? || error.nil? || Line.absent?(error)

              first.say
              wait(@watch.lost(error)) { @quiet } if error
            end
          rescue Exception => e # rubocop:disable Lint/RescueException
            raise if first.said?

            first.say(e)
          end

          # @return [Exception, nil] why the line is gone; nil: it was told to end
          def serve(first)
            line = Line.new(@settings, @name) { tell }
            line.open { |message| take(message) }
            first.say
            @watch.found
            attend(line)
          rescue StandardError => e
            e
          ensure
            @lag = nil
            line&.close
          end

          # Runs while the line holds.
          # @return [Exception, nil]
          def attend(line)
            until @ended || line.error
              return_unwanted(line) if @quiet && !@returned
              @lag = count(line) unless @quiet
              wait(COUNT_EVERY) { @ended || line.error || (@quiet && !@returned) }
            end
            line.error unless @ended
          end

          # @return [Integer, nil] nil: RabbitMQ is too busy to answer
          def count(line)
            line.waiting
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
          def return_unwanted(line)
            line.cancel
            @lock.synchronize do
              @returned = true
              @unwanted.slice!(0..)
            end.each(&:requeue)
          end

          def tell
            @lock.synchronize do
              yield if block_given?
              @news.broadcast
            end
          end

          # @param seconds [Numeric] at most
          # @yieldreturn [Boolean] whether there is no need to wait
          def wait(seconds)
            deadline = now + seconds
            @lock.synchronize do
              until yield || (left = deadline - now) <= 0
                @news.wait(@lock, left)
              end
            end
          end

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
