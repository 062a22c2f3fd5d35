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

      # @return [Symbol, String] that it was started with: a reload may have put another one into its slot
      def name(child) = child.name

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
        @roster.services.each { |child| child.name ||= @options.services[child.slot] } # the state of an older Pando
      end

      private

      # A reload may have removed some, or moved them to another slot.
      def dismiss_unwanted(generation)
        @roster.services.select(&:ready?).each do |child|
          if !listed?(child) then ask_to_leave(child, "no longer wanted")
          elsif moved?(child) || outdated?(child, generation) then ask_to_leave(child, "replaced")
          end
        end
      end

      def listed?(child) = @options.services.any? { |name| named?(child, name) }

      def moved?(child) = !named?(child, @options.services[child.slot])

      # A mold that replaces a lost one (heal) does not make services outdated.
      def outdated?(child, generation)
        child.generation < generation.number && @generations.settled? && @generations.outdated?(child)
      end

      # After a reload its predecessor may be in another slot, and another service's in its own.
      def in_place(index)
        @roster.services.find { |child| child.slot == index || named?(child, @options.services[index]) }
      end

      # An upgrade makes texts of the names.
      def named?(child, name) = name(child).to_s == name.to_s

      def start(index, generation)
        name = @options.services[index]
        return unless @throttles.over?(:service, name: name)

        child = @spawner.service(generation.mold, index, @notes[name.to_s])
        return child.name = name if child

        @throttles.fail(:service, "it could not be ordered", refused: true, name: name)
      end
    end
  end
end
