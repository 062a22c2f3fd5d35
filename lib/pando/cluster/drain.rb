# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/serializable"
require "pando/cluster/reactor/message"
require "pando/events"

module Pando
  module Cluster
    # Whether load balancers shall send requests here. They ask the reactor; it is told of each change, and once a
    # second that the monitor is at work. While the server drains, all that comes is served as ever. An operator begins
    # and ends that (`pando drain`); a graceful stop begins it, and goes on when they have had time to notice.
    #
    # Owned by the monitor.
    #
    # @api private
    class Drain
      include Brief
      extend Serializable

      serialize_as "drain", since: :number, reactor: :integer, visible: :flag

      # Seconds between two words to the reactor, and until a full link is tried again.
      TELL = 1.0
      RETRY = 0.02

      # @return [Float, nil] on Sys.now, when it began
      attr_reader :since

      def initialize(roster, shutdown, options)
        @roster = roster
        @shutdown = shutdown
        @options = options
        @health = @visible = !options.health.nil?
        @told_at = 0.0
      end

      # @return [Boolean] whether anybody can ask
      def visible?
        know(@roster.reactor)
        @visible
      end

      def begun? = !since.nil?

      # @return [Boolean] a stop follows
      def stop? = !@stop.nil?

      # @return [Boolean]
      def welcome? = !begun? && !@shutdown.begun? && @roster.ready_workers.any?

      # @return [Boolean] whether whoever looks now and then has seen it
      def noticed? = begun? && Sys.now >= noticed_at

      # @return [Float] seconds until then
      def left = noticed_at - Sys.now

      # Load balancers shall send no more.
      def begin(reason)
        return if begun?

        @since = Sys.now
        Events.emit("drain.started", reason: reason)
      end

      # They may again.
      def undo(reason)
        return unless begun?

        @since = nil
        Events.emit("drain.ended", reason: reason)
      end

      # A graceful stop, when they have had time to notice; at once if it is asked for twice.
      def stop(reason)
        now = Sys.now
        @since ||= now
        return @shutdown.gracefully(reason) if @stop || noticed?

        @stop = reason
        Events.emit("drain.started", reason: reason, seconds: (noticed_at - now).round(3))
      end

      # Called at each turn of the monitor's loop, in its last ones too.
      def proceed
        tell
        @shutdown.gracefully(@stop) if @stop && noticed? && !@shutdown.begun?
      end

      # @return [Float, nil]
      def due
        [(noticed_at if @stop && !@shutdown.begun?), (telling_at if listener)].compact.min
      end

      private

      # A reactor answers as it was told to at its start: the one from before an upgrade by the settings of then.
      def know(reactor)
        return if reactor.nil? || reactor.pid == @reactor

        @reactor = reactor.pid
        @visible = @health
      end

      def noticed_at = since + @options.drain_delay
      def listener = (@roster.reactor if visible?)

      def telling_at = @told ? @told_at + TELL : Sys.now + RETRY

      # A new reactor knows nothing.
      def tell
        reactor = listener or return
        word = [reactor, welcome? ? :welcome : :unwelcome]
        return if word == @told && Sys.now < telling_at

        @told_at = Sys.now
        @told = (word if reactor.order(Reactor::Message.new(word.last)))
      end
    end
  end
end
