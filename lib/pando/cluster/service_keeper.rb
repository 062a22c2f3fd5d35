# frozen_string_literal: true

require "pando/cluster/backoff"

module Pando
  module Cluster
    # Keeps one process alive for each service of the config. A service moves
    # to a new generation break-before-make: it is one of a kind, and must not
    # live twice.
    #
    # Owned by the monitor.
    #
    # @api private
    class ServiceKeeper
      def initialize(roster, spawner, generations, options)
        @roster = roster
        @spawner = spawner
        @generations = generations
        @options = options
        @backoffs = Hash.new { |backoffs, index| backoffs[index] = Backoff.new }
      end

      # Called at each turn of the monitor's loop.
      def reconcile
        generation = @generations.proved
        return unless generation&.forks?

        dismiss_surplus
        @options.services.each_index { |index| keep(index, generation) }
      end

      # @return [Symbol]
      def name(child) = @options.services[child.slot]

      def ready(child)
        Events.emit("service.ready", name: name(child), **child.identity)
      end

      # A service that ended is started again, later each time that it ends young.
      def lost(child, reason)
        backoff = @backoffs[child.slot]
        backoff.reset if child.leaving? || Sys.now - (child.row.started_at || Sys.now) > Backoff::LIMIT
        backoff.fail unless child.leaving?
        Events.emit("service.exited", name: name(child), **child.identity, reason: reason,
                                      backtrace: child.detail)
      end

      def due = @backoffs.each_value.filter_map(&:due).min

      def ask_to_leave(child, reason)
        child.leave(reason, Sys.now + @options.stop_timeout)
        child.order(Message.new(:leave))
        child.signal("TERM") # it may be asleep in code of its own
      end

      private

      # A reload may have left fewer.
      def dismiss_surplus
        @roster.services.each do |child|
          ask_to_leave(child, "no longer wanted") if child.slot >= @options.services.size && child.ready?
        end
      end

      def keep(index, generation)
        child = @roster.services.find { |service| service.slot == index }
        if child.nil?
          start(index, generation)
        elsif child.ready? && child.generation < generation.number
          ask_to_leave(child, "replaced")
        end
      end

      def start(index, generation)
        return unless @backoffs[index].over?

        @backoffs[index].fail unless @spawner.service(generation.mold, index)
      end
    end
  end
end
