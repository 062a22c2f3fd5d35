# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/reactor/message"
require "pando/line_writer"

module Pando
  module Cluster
    # The end of the server: everybody is asked to leave, those who do not are
    # killed at their deadline, and the last one is reaped before we exit.
    #
    # Owned by the monitor.
    #
    # @api private
    class Shutdown
      include Brief

      # Seconds that the reactor has beyond the others' deadline: it answers for those who are killed then.
      LAST_WORDS = 2.0

      # @return [Integer] the monitor's exit status
      attr_reader :status
      # @return [Float] on Sys.now, when whoever is left is killed
      attr_reader :deadline

      # @param options [Options] of the first pool
      # @param hear [#call] reads what a child has reported
      # @param options_of [#call] of a child's own pool
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

      # Running requests are finished, and those that wait in the listeners' queues are
      # served. Behind a reactor the workers stay until it has answered all that it holds,
      # or for half of the time.
      def gracefully(reason)
        @held_until = Sys.now + (@options.stop_timeout / 2) if @roster.reactor&.ready?
        start(reason, :stop_timeout, :drain)
      end

      # Running requests have the grace of a timeout to end.
      def quickly(reason) = start(reason, :grace, :leave)

      def at_once(reason)
        @begun = true
        @held_until = nil
        @deadline = Sys.now
        Events.emit("monitor.stopping", reason: reason, pid: Process.pid)
        @roster.each { |child| child.kill(reason) }
        forget_unborn
      end

      # Called at each turn of the monitor's loop, once we leave.
      def proceed
        return unless @held_until
        return if @roster.reactor && Sys.now < @held_until

        @held_until = nil
        @roster.workers.each { |worker| ask(worker) if worker.ready? }
      end

      # Nothing can be served: what remains is to say why.
      # @param detail [String, nil] the application's backtrace
      def fail(reason, detail)
        @status = 1
        @failure = detail || reason
        gracefully(reason)
      end

      # The last words on stderr, with warnings switched off as well.
      # @param patience [Float] seconds that whoever reads it has
      def tell_failure(patience = 0.0)
        return unless @failure

        stderr = LineWriter.new($stderr)
        stderr.write("pando could not start or go on serving: #{@failure.chomp}\n")
        stderr.flush(patience)
      end

      # A process that comes up while we leave. One that is stuck in its start
      # shall not hold us up for long.
      def end_late_comer(child, reason = "the server stops")
        return child.kill(reason) if Sys.now >= deadline

        child.call_off(reason)
        child.deadline = [child.deadline, Sys.now + @options.grace].compact.min
      end

      private

      # @param patience [Symbol] of Options
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
        forget_unborn
      end

      def failed = status.zero? ? {} : { status: status }
      def deadline_by(options) = @began_at + options.public_send(@patience)

      # It serves what the reactor holds.
      def held?(child) = @held_until && child.worker? && child.ready? && child.pool == @roster.reactor.pool

      def ask(child)
        return end_late_comer(child, @reason) if child.starting?

        deadline = deadline_by(@options_of.call(child))
        child.leave(@reason, child.reactor? ? deadline + LAST_WORDS : deadline)
        child.order(child.reactor? ? Reactor::Message.new(:drain) : Message.hurry(@order, left(deadline)))
        child.signal("TERM") if child.service?
      end

      # Seconds, for those who have threads to end.
      def left(deadline) = [deadline - Sys.now, 0].max

      # Ordered, but no process yet: a closed link cancels the order. Not that of one who was born
      # since we looked: it may be serving by now, and has said so on its link.
      def forget_unborn
        @roster.select(&:ordered?).each do |child|
          @hear.call(child)
          @roster.dismiss(child) if child.ordered?
        end
      end
    end
  end
end
