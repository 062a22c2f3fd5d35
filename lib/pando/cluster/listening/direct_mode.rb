# frozen_string_literal: true

require "pando/cluster/message"

module Pando
  module Cluster
    module Listening
      # In direct mode there is neither reactor nor lane: workers accept by themselves. A listener that a
      # reload has taken out is served out by one of the new release's.
      #
      # Owned by the monitor.
      #
      # @api private
      class DirectMode
        def initialize(roster, listeners)
          @roster = roster
          @listeners = listeners
        end

        def descriptors = []
        def open_for(_child) = nil
        def due = nil
        def state = nil
        def told? = @listeners.leaving.empty?
        def heard_at(now) = now
        def to_state(_state) = nil
        def from_state(_state) = nil

        # They came with their mold.
        # @param _changed [Array<Listener>]
        def listeners_changed(_changed); end

        # Called at each turn of the monitor's loop.
        def reconcile(stopping)
          return if stopping || @listeners.leaving.empty?

          @listeners.forget(@listeners.leaving.select { |listener| serve_out(listener) })
        end

        private

        # One that is not at a job does it at once.
        def serve_out(listener)
          order = Message.new(:serve_out, text: listener.encode)
          workers = @roster.ready_workers.sort_by { |worker| [worker.row.busy_since ? 1 : 0, -worker.generation] }
          workers.any? { |worker| worker.order(order, [listener.socket]) }
        end
      end
    end
  end
end
