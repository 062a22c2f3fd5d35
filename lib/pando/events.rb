# frozen_string_literal: true

require "pando/event"
require "pando/events/subscription"

module Pando
  # Where every fact about the cluster is told, and to whom. Each process has
  # its own list of subscribers; a forked child starts with its parent's.
  #
  #     Pando::Events.subscribe("worker.killed") { |event| page_somebody(event[:reason]) }
  #     Pando::Events.emit("worker.killed", slot: 3, generation: 2, pid: 4711, reason: "timeout")
  #
  # Emitting takes no lock, so that it is allowed in a trap handler, and costs
  # nothing but the look at an empty list where nobody listens. The names are in
  # Events::Catalogue; one that is missing there is passed on all the same.
  module Events
    @subscriptions = [].freeze
    @facts = {}.freeze
    @lock = Mutex.new

    class << self
      # Tells every subscriber of `name`, in order of subscription. What a
      # subscriber raises never reaches the caller.
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

      # Lets subscribers go on with what they could not do at once. Called at each turn of a process's loop.
      #
      # @api private
      # @param patience [Float] seconds that it may take
      # @return [nil]
      def proceed(patience = 0.0)
        @subscriptions.each { |subscription| subscription.proceed(patience) }
        nil
      end

      # Facts that each event of this process has from now on; with a block, each one that is told in it. A process with
      # several threads has them for all of them.
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

      # A symbol cannot hold a dot comfortably: its first underscore stands for
      # it (no noun has an underscore).
      #
      # @param name [String, Symbol]
      # @return [String] `noun.verb`
      def name_of(name)
        name.is_a?(Symbol) ? name.to_s.sub("_", ".") : name.to_s
      end
    end
  end
end
