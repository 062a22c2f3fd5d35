# frozen_string_literal: true

require "pando/cluster/throttling/restart_throttles"

module Pando
  module Cluster
    # Keeps one process alive for each service of the config. A service moves
    # to a new generation break-before-make: it is one of a kind, and must not
    # live twice.
    #
    # Owned by the monitor.
    #
    # @api private
    class ServiceSupervisor
      # @param throttles [Throttling::RestartThrottles] those of the services
      def initialize(roster, spawner, generations, options, throttles: Throttling::RestartThrottles.new)
        @throttles = throttles
        @roster = roster
        @spawner = spawner
        @generations = generations
        @options = options
      end

      # Called at each turn of the monitor's loop.
      def reconcile
        generation = @generations.proved
        return stand_in unless generation&.forks?

        dismiss_surplus
        @options.services.each_index { |index| keep(index, generation) }
      end

      # @return [Boolean] whether one is to be forked
      def wanting? = @options.services.each_index.any? { |index| in_place(index).nil? }

      # @return [Symbol]
      def name(child) = @options.services[child.slot]

      def ready(child)
        Events.emit("service.ready", name: name(child), **child.identity)
      end

      # A service that ended is started again, later each time if that happens often.
      # @param exit_report [ExitReport] @param refused [Boolean] the kernel had no process for it
      def lost(child, exit_report, refused:)
        Events.emit(exit_report.wanted? ? "service.exited" : "service.lost",
                    name: name(child), **child.identity, reason: exit_report.reason, backtrace: child.detail)
        return if child.leaving?

        @throttles.fail(:service, exit_report.reason, refused: refused || !!child.passing, name: name(child))
      end

      def ask_to_leave(child, reason)
        child.leave(reason, Sys.now + @options.stop_timeout)
        child.order(Message.new(:leave))
        child.signal("TERM") # it may be asleep in code of its own
      end

      # @param state [Upgrade::State]
      def to_state(state)
        @options.services.each { |name| state.add("service", name: name) }
      end

      # Until a reload they are those that the mold knows, whatever the configuration says by now.
      def from_state(state)
        @options.services = state.all("service").map { |record| record.text(:name) }
      end

      private

      # A reload may have left fewer.
      def dismiss_surplus
        @roster.services.each do |child|
          ask_to_leave(child, "no longer wanted") if child.slot >= @options.services.size && child.ready?
        end
      end

      def keep(index, generation)
        child = in_place(index)
        if child.nil?
          start(index, generation)
        elsif child.ready? && outdated?(child, generation)
          ask_to_leave(child, "replaced")
        end
      end

      # A mold in the place of one that is gone replaces nobody.
      def outdated?(child, generation)
        child.generation < generation.number && @generations.settled? && @generations.outdated?(child)
      end

      # The mold that is known to work was let go before its successor was to be watched: what is missing cannot wait
      # for the end of that.
      def stand_in
        generation = @generations.current
        return unless generation&.forks?

        @options.services.each_index { |index| start(index, generation) if in_place(index).nil? }
      end

      def in_place(index) = @roster.services.find { |service| service.slot == index }

      def start(index, generation)
        name = @options.services[index]
        return if !@throttles.over?(:service, name: name) || @spawner.service(generation.mold, index)

        @throttles.fail(:service, "it could not be ordered", refused: true, name: name)
      end
    end
  end
end
