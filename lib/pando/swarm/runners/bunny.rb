# frozen_string_literal: true

require "pando/errors"
require "pando/events"
require "pando/swarm/runners"
require "pando/swarm/runners/bunny/threads"

module Pando
  module Swarm
    module Runners
      # Consumes RabbitMQ by the gem bunny, without a framework:
      #
      #   node :bunny, count: 2, concurrency: 5, queues: %w[mails], consumer: "MailConsumer", require: "./mails.rb"
      #
      # A consumer has `call(message)`; {Message} is its argument, and docs/swarm/bunny.md describes the rest. Made and
      # used in a node, on its main thread. Bunny delivers; the node's own threads ({ThreadPool}) run the consumer and
      # acknowledge.
      class Bunny
        # Seconds that threads have to end when they are told to break off.
        BREAK_OFF_WITHIN = 5

        # In the mold: loads the library and the consumers.
        # @param kind [Config::NodeKind]
        # @raise [BootError]
        def self.load(kind)
          Runners.require_gem("bunny", "bunny")
          require "pando/swarm/runners/bunny/settings"
          require "pando/swarm/runners/bunny/subscription"
          RequiredFiles.load(kind)
        end

        # @param node [Node]
        def initialize(node)
          @node = node
          @settings = Settings.new(node)
        end

        # @raise [StandardError] RabbitMQ is up, and refuses us
        def start
          @settings.consumer
          @threads = ThreadPool.new(@node.concurrency, "bunny job") { |message| work(message) }
          @subscription = Subscription.new(@settings, @node) { |message| @threads.push(message) }
          @subscription.start
        rescue StandardError
          stop
          raise
        end

        def quiet
          @subscription.quiet(@threads.quiet)
        end

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

        # @return [String, nil]
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
      end
    end
  end
end
