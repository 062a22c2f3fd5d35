# frozen_string_literal: true

module Pando
  module Cluster
    class Roster
      # What is asked of a list of children, be it of all or of one pool's.
      #
      # @api private
      module Selection
        include Enumerable

        # Asks those workers of a generation to leave that have not come up yet.
        def call_off(generation, reason)
          workers.each { |worker| worker.call_off(reason) if worker.generation == generation && worker.starting? }
        end

        def workers = select(&:worker?)
        def molds = select(&:mold?)
        def services = select(&:service?)
        # @return [Child, nil]
        def reactor = find(&:reactor?)
        def ready_workers = select { |child| child.worker? && child.ready? }
        def in_slot(slot) = select { |child| child.worker? && child.slot == slot }
        def by_pid(pid) = find { |child| child.pid == pid }
      end
    end
  end
end
