# frozen_string_literal: true

require "pando/events"

module Pando
  module Cluster
    class Pools
      # Tells the child_events of a child's pool what Inbox and Reaper tell.
      #
      # Owned by Pools, in the monitor.
      #
      # @api private
      class ChildEventRouter
        # @param pools [Pools]
        def initialize(pools)
          @pools = pools
        end

        %i[child_adopted child_ready child_checking child_crashing child_leaving child_signalled child_wants_replacement
           canary_tried fork_failed fork_declined thread_reported state_reported].each do |news|
          define_method(news) do |child, *details, **more|
            pool = @pools.of(child)
            @pools.about(pool) { pool.child_events.public_send(news, child, *details, **more) }
          end
        end

        def lane_corrupt(number) = @pools.first.child_events.lane_corrupt(number)

        # A process that has ended can say no more.
        def child_lost(child, *details, **more)
          pool = @pools.of(child)
          @pools.about(pool) do
            pool.child_events.child_lost(child, *details, **more)
            Events.emit("lines.lost", count: child.lines_due, pid: child.pid) if child.lines_due.positive?
          end
        end

        # In direct mode a worker does what the reactor does elsewhere, whose words these are (HTTP::ReactorReport).
        def reader_lost(child, text)
          reader, request = text.split("\n", 2)
          @pools.about(@pools.of(child)) do
            Events.emit("requests.lost", **child.identity, count: 1, reason: "write_timeout (1)", slowest: reader,
                                                           request: request)
          end
        end

        def lines_lost(number) = @pools.first.tally.add_lost_lines(number)
      end
    end
  end
end
