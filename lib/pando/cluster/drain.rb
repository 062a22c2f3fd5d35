# frozen_string_literal: true

module Pando
  module Cluster
    # Decides whether load balancers should send requests to this server. Their health checks ask the reactor. The
    # monitor tells the reactor of each change, and once a second that the monitor is at work. While the server drains,
    # it serves requests as before. An operator begins and ends a drain (`pando drain`). A graceful stop begins one, and
    # goes on after `drain_delay`. Owned by the monitor.
    class Drain
      include Brief
      extend Serializable

      serialize_as "drain", since: :number

      # Seconds between two messages to the reactor, and until a full link is tried again.
      TELL = 1.0
      RETRY = 0.02

      attr_reader :since

      def initialize(roster, shutdown, options)
        @roster = roster
        @shutdown = shutdown
        @options = options
        @visible = !options.health.nil?
        @told_at = 0.0
      end

      def visible? = @visible

      def begun? = !since.nil?

      def stop? = !@stop.nil?

      def welcome? = !begun? && !@shutdown.begun? && @roster.ready_workers.any?

      # Whether load balancers have had time to notice.
      def noticed? = begun? && Sys.now >= noticed_at

      def left = noticed_at - Sys.now

      def begin(reason)
        return if begun?

        @since = Sys.now
        Events.emit("drain.started", reason: reason)
      end

      def undo(reason)
        return unless begun?

        @since = nil
        Events.emit("drain.ended", reason: reason)
      end

      # Begins a graceful stop after drain_delay, or at once if it is asked for twice.
      def stop(reason)
        @since ||= Sys.now
        return @shutdown.gracefully(reason) if @stop || noticed?

        @stop = reason
        Events.emit("drain.started", reason: reason, seconds: left.round(3))
      end

      def proceed
        tell
        @shutdown.gracefully(@stop) if stop_due? && noticed?
      end

      def due = [(noticed_at if stop_due?), (due_to_tell_at if listener)].compact.min

      private

      def stop_due? = stop? && !@shutdown.begun?
      def noticed_at = since + @options.drain_delay
      def listener = (@roster.reactor if visible?)
      def due_to_tell_at = @told ? @told_at + TELL : Sys.now + RETRY

      # A new reactor knows nothing, so the message names it too.
      def tell
        reactor = listener or return
        message = [reactor, welcome? ? :welcome : :unwelcome]
        return if message == @told && Sys.now < due_to_tell_at

        @told_at = Sys.now
        @told = (message if reactor.order(Reactor::Message.new(message.last)))
      end
    end
  end
end
