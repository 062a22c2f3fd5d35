# frozen_string_literal: true

module Pando
  module Cluster
    module Listening
      # Stands for reactor and lanes in direct mode, where workers accept connections themselves. A listener that a
      # reload has removed is served by a worker of the new release until its queue is empty. Owned by a Pool.
      class DirectMode
        def initialize(roster, listeners)
          @roster = roster
          @listeners = listeners
        end

        def descriptors = []
        def room?(_lanes) = true
        def open_for(_child) = []
        def due = nil
        def state = nil
        def counters = nil
        def counters_of(_pool) = nil
        def waiting_for(_pool) = nil
        def requests_of(_pool) = nil
        def log? = false
        def told? = @listeners.leaving.empty?
        def heard_at(now) = now
        def to_state(_state) = nil
        def from_state(_state) = nil

        # Workers have inherited the listeners from their mold.
        def listeners_changed(_changed); end

        def reconcile(stopping)
          return if stopping || @listeners.leaving.empty?

          @listeners.forget(@listeners.leaving.select { |listener| serve_out(listener) })
        end

        private

        # Idle workers come first, since they serve at once.
        def serve_out(listener)
          order = Message.new(:serve_out, text: listener.encode)
          workers = @roster.ready_workers.sort_by { |worker| [worker.row.busy_since ? 1 : 0, -worker.generation] }
          workers.any? { |worker| worker.order(order, [listener.socket]) }
        end
      end
    end
  end
end
