# frozen_string_literal: true

require "pando/events"

module Pando
  module Cluster
    module Listening
      # All that a reload may move: the listeners of the application and the control socket. What is new is opened
      # before anything changes, and either taken into use, or closed again.
      #
      # Owned by the monitor.
      #
      # @api private
      class Addresses
        # @param reactors [Reactor::Supervisor, DirectMode] whom changes of listeners are told
        def initialize(listeners, control, reactors)
          @listeners = listeners
          @control = control
          @reactors = reactors
        end

        # @param renewal [#listen, #control]
        # @raise [BootError] which of them cannot be listened on, and why
        def prepare(renewal)
          @change = @listeners.prepare(renewal.listen)
          @control.prepare(renewal.control)
        end

        # @return [Array<Listener>] that the new release accepts from
        def upcoming = @change.views

        def adopt
          before = @listeners.to_a
          @reactors.listeners_changed(@listeners.adopt(@change))
          @control.adopt
          tell(before)
          @change = nil
        end

        def give_up
          @control.give_up
          @listeners.give_up(@change) if @change
          @change = nil
        end

        private

        def tell(before)
          after = @listeners.to_a
          (after - before).each { |one| Events.emit("listener.opened", **one.identity) }
          (before - after).each { |one| Events.emit("listener.closed", listen: one.name) }
        end
      end
    end
  end
end
