# frozen_string_literal: true

require "pando/errors"
require "pando/events"
require "pando/swarm/runners"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      # Consumes RabbitMQ by the gem bunny, without a framework:
      #
      #   node :bunny, count: 2, concurrency: 5, queues: %w[mails], consumer: "MailConsumer", require: "./mails.rb"
      #
      # A consumer has `call(message)`; {Message} is its argument, and docs/swarm/bunny.md describes the rest. Bunny
      # delivers; the node's own threads ({ThreadPool}) run the consumer and acknowledge.
      class Bunny
        # Seconds that threads have to end when they are told to break off.
        BREAK_OFF_WITHIN = 5

        # In the mold: loads the library and the consumers.
        def self.load(kind)
          Runners.require_gem("bunny", "bunny")
          require "pando/swarm/runners/bunny/subscription"
          RequiredFiles.load(kind)
        end

        def initialize(node)
          @node = node
          @settings = Settings.new(node)
        end

        # @raise [StandardError] RabbitMQ is up, and refuses us
        def start
          @settings.consumer
          @threads = ThreadPool.new(@node.concurrency, "bunny job", unwanted: :taken_back?.to_proc) do |message|
            work(message)
          end
          @subscription = Subscription.new(@settings, @node) { |message| @threads.push(message) }
          @subscription.start
        rescue StandardError
          stop
          raise
        end

        def quiet = @subscription.quiet(@threads.quiet)

        # Breaks off jobs that still run. Their messages go back to RabbitMQ.
        def stop
          @threads&.stop(BREAK_OFF_WITHIN)
          @subscription&.stop
        end

        def busy? = @threads.busy?
        def progress = @threads.done
        def done = @threads.done
        def failed = @threads.failed
        def in_progress = @threads.in_progress

        # Messages in the queues that RabbitMQ has not delivered, of all nodes together.
        def lag = @subscription.lag

        def healthy?
          return "a thread that runs jobs has died" unless @threads.all_alive?

          "the thread that keeps the connection has died" unless @subscription.alive?
        end

        private

        # @return [Boolean] whether the job succeeded
        def work(message)
          @settings.handler.call(message)
          message.ack
          true
        rescue Exception => e # rubocop:disable Lint/RescueException
          message.public_send(@settings.on_error)
          report(message, e)
          false
        end

        def report(message, error)
          Events.emit("job.failed", node: @node.kind, slot: @node.number, pid: Process.pid, name: message.queue,
                                    reason: "#{error.message} (#{error.class})", location: error.backtrace&.first)
        end

        # The keywords of the `node` line that concern RabbitMQ. Made in a node.
        class Settings
          # In seconds and in milliseconds. A Hash as `connection:` overrides them. Pando reports by events what Bunny
          # would log.
          DEFAULTS = { connection_timeout: 5, continuation_timeout: 5000, log_file: $stderr, log_level: :fatal }.freeze

          # prefetch: how many unacknowledged messages of each queue RabbitMQ gives to a node. on_error: what happens to
          # a message whose consumer raises, :reject or :requeue.
          attr_reader :prefetch, :on_error, :queues

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

          def consumer
            @consumer ||= @named.is_a?(String) ? Object.const_get(@named) : @named
          end
        end

        # A Sneakers (or Kicks) worker class as a consumer: the result of its `work` settles the message. Sneakers'
        # middlewares and metrics run. Its handlers (Maxretry and the like) do not: they need a channel of their own.
        #
        # Used by the threads that run jobs, in a node.
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

          def self.for?(consumer)
            defined?(::Sneakers::Worker) && consumer.is_a?(Class) && consumer.include?(::Sneakers::Worker)
          end

          # Declares queues, their exchange and bindings as Sneakers' configuration says.
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

          def call(message)
            @worker.process_work(message.delivery_info, message.properties, message.payload, Handler.new(message))
          end
        end

        # Threads that process items, one at a time each. The caller that gives items must limit their number (by a
        # broker's prefetch, for instance). Owned by the runner, in a node.
        #
        # At any moment an item is either waiting or in progress: {#busy?} is never false between the two.
        class ThreadPool
          # @param size [Integer] number of threads @param name [String] their name, followed by a number
          # @param unwanted [#call] whether a given waiting item need not be processed any more. It is dropped
          # @yieldreturn [Boolean] false: the item has failed. An exception counts as a failure too, and goes no further
          def initialize(size, name, unwanted: ->(_) { false }, &work)
            @unwanted = unwanted
            @work = work
            @lock = Mutex.new
            @change = ConditionVariable.new
            @waiting = []
            @quiet = @ended = false
            @in_progress = @done = @failed = 0
            @threads = Array.new(size) { |number| Thread.new { run }.tap { |one| one.name = "#{name} #{number}" } }
          end

          # Numbers of items: those being processed, those that were processed, and those of them that have failed.
          attr_reader :in_progress, :done, :failed

          def busy? = @in_progress > 0

          # @return [Boolean] false: it accepts no new items
          def push(item)
            @lock.synchronize do
              return false if @quiet

              drop_unwanted
              @waiting << item
              @change.signal
              true
            end
          end

          # No item begins from now on.
          # @return [Array<Object>] items that were given and have not begun
          def quiet
            @lock.synchronize do
              @quiet = true
              drop_unwanted
              @waiting.slice!(0..)
            end
          end

          # Ends the threads. Items in progress are broken off.
          # @param within [Numeric] seconds
          # @return [Boolean] whether all threads are gone
          def stop(within)
            quiet
            @lock.synchronize do
              @ended = true
              @change.broadcast
            end
            deadline = Sys.now + within
            @threads.each(&:kill) if busy?
            @threads.map { |thread| thread.join([deadline - Sys.now, 0].max) }.all?
          end

          # @return [Boolean] whether all needed threads are alive; an item may have ended its thread
          def all_alive? = @quiet || @threads.all?(&:alive?)

          private

          def run
            while (item = take)
              begin
                success = nil
                success = attempt(item.first)
              ensure # a job may end its thread, and so does a stop
                finish(success)
              end
            end
          end

          def take
            @lock.synchronize do
              @change.wait(@lock) while drop_unwanted.empty? && !@ended
              return if @ended

              @in_progress += 1
              [@waiting.shift]
            end
          end

          # @return [Array] what is left
          def drop_unwanted = @waiting.delete_if(&@unwanted)

          # An exception in a job must not end the thread or the node: `exit` in a job is the job's failure.
          def attempt(item)
            @work.call(item) != false
          rescue Exception # rubocop:disable Lint/RescueException
            false
          end

          # @param success [Boolean, nil] nil: the item was broken off
          def finish(success)
            @lock.synchronize do
              @in_progress -= 1
              next if success.nil? && @ended

              @done += 1
              @failed += 1 unless success
            end
          end
        end

        # Keeps track of the threads that Bunny starts. Ruby gives a new thread the group of the thread that starts it.
        # So every thread that a tracked thread starts is tracked too, and can be ended and waited for. Owned by the
        # Subscription, in a node.
        class ThreadTracker
          def initialize
            @group = ThreadGroup.new
          end

          # @return [Thread] it joins the group before it does anything else
          def start(name)
            Thread.new do
              @group.add(Thread.current)
              Thread.current.name = name
              yield
            end
          end

          def threads = @group.list

          # Kills all its threads, whatever they are doing.
          # @param within [Numeric] seconds
          # @return [Boolean] whether no thread is left
          def kill_all(within)
            deadline = Sys.now + within
            until (left = threads - [Thread.current]).empty?
              return false if Sys.now > deadline

              left.each(&:kill)
              left.each { |thread| ended?(thread, [deadline - Sys.now, 0].max) }
            end
            true
          end

          private

          # Ruby itself reports the exception that a thread died of.
          def ended?(thread, seconds)
            thread.join(seconds)
          rescue Exception # rubocop:disable Lint/RescueException
            true
          end
        end
      end
    end
  end
end
