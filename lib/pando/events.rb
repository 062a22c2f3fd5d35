# frozen_string_literal: true

module Pando
  # One fact about the cluster, such as "worker 3 of generation 2 is ready". Events.emit creates it in the process that
  # observed the fact and hands it to that process's subscribers. It is immutable.
  #
  #     event.name            # => "worker.ready"
  #     event[:slot]          # => 3
  class Event
    # @return [String] `noun.verb`
    attr_reader :name
    # @return [Time] wall-clock time of the emit
    attr_reader :time
    # @return [Hash{Symbol => Object}] frozen
    attr_reader :payload

    # @param name [String]
    # @param payload [Hash{Symbol => Object}]
    # @param time [Time]
    def initialize(name, payload = {}, time: Time.now)
      @name = name
      @payload = payload.frozen? ? payload : payload.dup.freeze
      @time = time
      freeze
    end

    # @param key [Symbol]
    # @return [Object, nil]
    def [](key)
      @payload[key]
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{@name} #{@payload}>"
    end
  end

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
      def name_of(name) = name.is_a?(Symbol) ? name.to_s.sub("_", ".") : name.to_s
    end

    # One subscriber: the event that it wants and the block to call. Events holds it; `Events.subscribe` returns it to
    # users as a handle.
    #
    # A subscriber is foreign code inside the monitor's loop. If it raises, Pando reports that on stderr with the
    # block's line, but only once: a metrics client that is down would otherwise fill the disk.
    class Subscription
      # @api private
      # @param name [String, nil] nil for all events
      # @param each_turn [#call, nil] see {Events.proceed}
      def initialize(name, block, each_turn = nil)
        @name = name
        @block = block
        @each_turn = each_turn
        @reported = false
      end

      # @api private
      def wants?(name) = @name.nil? || @name == name

      # @api private
      def proceed(patience)
        @each_turn&.call(patience)
        nil
      rescue StandardError, ScriptError, SystemStackError => error
        report("a turn", error)
      end

      # @api private
      def deliver(event)
        @block.call(event)
        nil
      rescue StandardError, ScriptError, SystemStackError => error
        report(event.name, error)
      end

      private

      def report(occasion, error)
        return if @reported

        @reported = true
        require "pando/line_writer" # a command that only reads settings needs no C extension
        LineWriter.new($stderr).write("pando: the subscriber at #{location} failed on #{occasion}: " \
                                      "#{describe(error)} (told once)\n")
      end

      def location
        file, line = @block.source_location
        file ? "#{file}:#{line}" : "an unknown line"
      end

      def describe(error) = "#{error.class}: #{error.message}".inspect[1..-2].slice(0, 500)
    end
  end
end
