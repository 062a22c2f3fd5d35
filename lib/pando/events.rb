# frozen_string_literal: true

require "pando/event"
require "pando/events/subscription"

module Pando
  # Publishes facts about the cluster to subscribers. Each process has its own list of subscribers; a forked child
  # starts with its parent's.
  #
  #     Pando::Events.subscribe("worker.killed") { |event| page_somebody(event[:reason]) }
  #     Pando::Events.emit("worker.killed", slot: 3, generation: 2, pid: 4711, reason: "timeout")
  #
  # Emitting takes no lock, so it is allowed in a trap handler. Without subscribers it costs only the check of an empty
  # list. The names are in Events::Catalogue; an event with an unknown name is passed on anyway.
  module Events
    @subscriptions = [].freeze
    @facts = {}.freeze
    @lock = Mutex.new

    class << self
      # Calls every subscriber of `name`, in order of subscription. An exception in a subscriber never reaches the
      # caller.
      #
      # @param name [String] `noun.verb`
      # @param payload [Hash{Symbol => Object}]
      # @return [nil]
      def emit(name, **payload)
        listeners = @subscriptions
        return if listeners.empty?

        event = Event.new(name, @facts.empty? ? payload : { **@facts, **payload })
        listeners.each { |subscription| subscription.deliver(event) if subscription.wants?(name) }
        nil
      end

      # Lets subscribers finish what they had to postpone. Called at each turn of a process's loop.
      #
      # @api private
      # @param patience [Float] seconds that it may take
      # @return [nil]
      def proceed(patience = 0.0)
        @subscriptions.each { |subscription| subscription.proceed(patience) }
        nil
      end

      # Adds facts to each event of this process from now on; with a block, to each event that is emitted in it. If the
      # process has several threads, this applies to all of them.
      #
      # @api private
      # @param facts [Hash{Symbol => Object}]
      def about(**facts)
        before = @facts
        @facts = { **before, **facts }.freeze
        yield if block_given?
      ensure
        @facts = before if block_given?
      end

      # @param name [String, Symbol, nil] `"worker.ready"`, or `:worker_ready`
      #   for the same event, or nil for all of them
      # @param each_turn [#call, nil] see {proceed}
      # @yieldparam event [Event]
      # @return [Subscription] the handle for {unsubscribe}
      def subscribe(name = nil, each_turn: nil, &block)
        raise ArgumentError, "Events.subscribe needs a block" unless block

        subscription = Subscription.new(name && name_of(name), block, each_turn)
        @lock.synchronize { @subscriptions = [*@subscriptions, subscription].freeze }
        subscription
      end

      # @param subscription [Subscription]
      # @return [Boolean] whether it was subscribed
      def unsubscribe(subscription)
        @lock.synchronize do
          before = @subscriptions
          @subscriptions = before.reject { |one| one.equal?(subscription) }.freeze
          @subscriptions.size < before.size
        end
      end

      # A symbol cannot contain a dot without quotes, so its first underscore stands for it. (No noun has an
      # underscore.)
      #
      # @param name [String, Symbol]
      # @return [String] `noun.verb`
      def name_of(name)
        name.is_a?(Symbol) ? name.to_s.sub("_", ".") : name.to_s
      end
    end
  end
end
