# frozen_string_literal: true

require "pando/cluster/restart_throttles"
require "pando/cluster/service_notes"

module Pando
  module Cluster
    # Keeps one process alive for each service of the configuration. A service moves to a new generation
    # break-before-make, since it must not run twice. Owned by a Pool, in the monitor.
    class ServiceSupervisor
      def initialize(roster, spawner, generations, options, throttles: RestartThrottles.new)
        @throttles = throttles
        @roster = roster
        @spawner = spawner
        @generations = generations
        @options = options
        @notes = Hash.new { |notes, name| notes[name] = ServiceNotes.create }
      end

      # The last proved generation forks the services. If it has no mold any more and its successor is still on trial,
      # missing services cannot wait for the end of that, so the successor forks them.
      def reconcile
        generation = [@generations.proved, @generations.current].find { |one| one&.forks? } or return
        missing = @options.services.each_index.reject { |index| in_place(index) }
        dismiss_unwanted(generation) if generation.equal?(@generations.proved)
        missing.each { |index| start(index, generation) }
      end

      def wanting? = @options.services.each_index.any? { |index| in_place(index).nil? }

      def name(child) = @options.services[child.slot]

      def ready(child)
        Events.emit("service.ready", name: name(child), **child.identity)
      end

      # A service that ended is restarted, later each time if that happens often.
      # @param exit_report [ExitReport] @param refused [Boolean] the kernel had no process for it
      def lost(child, exit_report, refused:)
        Events.emit(exit_report.wanted? ? "service.exited" : "service.lost",
                    name: name(child), **child.identity, reason: exit_report.reason, backtrace: child.detail)
        return if child.leaving?

        @throttles.fail(:service, exit_report.reason, refused: refused || !!child.passing, name: name(child))
      end

      def ask_to_leave(child, reason)
        child.ask_to_leave(reason, Sys.now + @options.stop_timeout)
        child.signal("TERM") # its own code may be asleep
      end

      def to_state(state)
        @options.services.each { |name| state.add("service", name: name, notes: state.keep(@notes[name.to_s])) }
      end

      # Until a reload the services are those that the mold knows, whatever the configuration says by now.
      def from_state(state)
        @options.services = state.all("service").map do |record|
          @notes[record.text(:name)] = ServiceNotes.for_fd(state.take(record.integer(:notes)))
          record.text(:name)
        end
      end

      private

      # A reload may have removed some.
      def dismiss_unwanted(generation)
        @roster.services.select(&:ready?).each do |child|
          if child.slot >= @options.services.size then ask_to_leave(child, "no longer wanted")
          elsif outdated?(child, generation) then ask_to_leave(child, "replaced")
          end
        end
      end

      # A mold that replaces a lost one (heal) does not make services outdated.
      def outdated?(child, generation)
        child.generation < generation.number && @generations.settled? && @generations.outdated?(child)
      end

      def in_place(index) = @roster.services.find { |service| service.slot == index }

      def start(index, generation)
        name = @options.services[index]
        return if !@throttles.over?(:service, name: name) || @spawner.service(generation.mold, index, @notes[name.to_s])

        @throttles.fail(:service, "it could not be ordered", refused: true, name: name)
      end
    end
  end
end
