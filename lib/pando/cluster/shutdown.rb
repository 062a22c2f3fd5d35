# frozen_string_literal: true

require "pando/line_writer"

module Pando
  module Cluster
    # Stops the server. All children are asked to leave, those that do not are killed at their deadline, and the monitor
    # exits after the last one is reaped. Owned by the monitor.
    class Shutdown
      include Brief

      # Seconds that the reactor has beyond the others' deadline, to answer the requests of workers that are killed.
      REACTOR_EXTRA = 2.0

      # @return [Integer] the monitor's exit status
      attr_reader :status
      # @return [Float] on Sys.now, when the remaining children are killed
      attr_reader :deadline

      # @param hear [#call] reads the reports of a child
      def initialize(roster, options, hear, options_of: ->(_child) { options })
        @hear = hear
        @roster = roster
        @options = options
        @options_of = options_of
        @begun = false
        @status = 0
        @held_until = nil
      end

      def begun? = @begun
      def complete? = begun? && @roster.empty?

      # Running requests finish, and those in the listeners' queues are served. Behind a reactor the workers stay until
      # it has answered all that it holds, or for half of the time. Does nothing if the server stops already: the
      # deadline stays.
      def gracefully(reason)
        return if begun?

        @held_until = Sys.now + (@options.stop_timeout / 2) if @roster.reactor&.ready?
        start(reason, :stop_timeout, :drain)
      end

      # Running requests have `grace` to end, also those that a graceful stop has given more. Does nothing after another
      # quick stop, or one at once.
      def quickly(reason)
        return if begun? && @order != :drain

        @held_until = nil
        start(reason, :grace, :leave)
      end

      def at_once(reason)
        @begun = true
        @order = nil # no longer :drain, so that no quick stop follows
        @held_until = nil
        @deadline = Sys.now
        Events.emit("monitor.stopping", reason: reason, pid: Process.pid)
        @roster.each { |child| child.kill(reason) }
        cancel_orders
      end

      # Called at each turn of the monitor's loop while the server stops.
      def proceed
        return unless @held_until
        return if @roster.reactor && Sys.now < @held_until

        @held_until = nil
        @roster.workers.each { |worker| ask(worker) if worker.ready? }
      end

      # The server cannot serve: it stops with status 1.
      # @param detail [String, nil] the application's backtrace
      def fail(reason, detail)
        @status = 1
        @failure = detail || reason
        gracefully(reason)
      end

      # Prints the reason as the last lines on stderr, even if warnings are switched off.
      def print_failure(patience = 0.0)
        return unless @failure

        stderr = LineWriter.new($stderr)
        stderr.write("pando could not start or go on serving: #{@failure.chomp}\n")
        stderr.flush(patience)
      end

      # Ends a process that comes up while the server stops. A stuck start must not delay the stop for long.
      def end_starting_child(child, reason = "the server stops")
        return child.kill(reason) if Sys.now >= deadline

        child.call_off(reason)
        child.deadline = [child.deadline, Sys.now + @options.grace].compact.min
      end

      private

      def start(reason, patience, order)
        @begun = true
        @began_at = Sys.now
        @patience = patience
        @reason = reason
        @order = order
        seconds = [@options, *@roster.map(&@options_of)].map(&patience).max
        @deadline = @began_at + seconds
        Events.emit("monitor.stopping", reason: reason, pid: Process.pid, seconds: seconds, **failed)
        @roster.to_a.each { |child| ask(child) unless held?(child) }
        cancel_orders
      end

      def failed = status.zero? ? {} : { status: status }

      # A worker that still serves what the reactor holds.
      def held?(child) = @held_until && child.worker? && child.ready? && !@options_of.call(child).jobs

      def ask(child)
        return end_starting_child(child, @reason) if child.starting?

        deadline = @began_at + @options_of.call(child)[@patience]
        child.leave(@reason, child.reactor? ? deadline + REACTOR_EXTRA : deadline)
        child.order(child.reactor? ? Reactor::Message.new(:drain) : Message.hurry(@order, left(deadline)))
        child.signal("TERM") if child.service?
      end

      # Seconds, for processes that have threads to end.
      def left(deadline) = [deadline - Sys.now, 0].max

      # Cancels orders that are no process yet, by closing the link. A child that has reported in the meantime may be
      # serving, so its link is read first.
      def cancel_orders
        @roster.select(&:ordered?).each do |child|
          @hear.call(child)
          @roster.dismiss(child) if child.ordered?
        end
      end
    end
  end
end
