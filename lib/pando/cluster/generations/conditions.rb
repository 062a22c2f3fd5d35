# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    class Generations
      # Whether this is a good moment for an automatic refork: not while something else is going on, nor while memory is
      # short, because a refork needs additional processes; preferably while few requests are served. Owned by a Pool.
      class Conditions
        # Memory is short if processes wait for it during this percentage of the time (PSI).
        PRESSURE = 10.0
        # The share of the workers that may be busy in a quiet moment.
        BUSY = 0.5
        # The default: nothing prevents a refork.
        NONE = Struct.new(:obstacle, :quiet?, :occupation).new(nil, true).freeze

        # @param pressure [#call] percent, or nil
        def initialize(pool, pressure: Sys::Memory.method(:pressure))
          @pool = pool
          @pressure = pressure
        end

        def obstacle = occupation || shortage

        # @return [String, nil] what else is going on
        def occupation
          return "a reload is under way" if @pool.reload.under_way?

          "the server drains" if @pool.drain.begun?
        end

        # Whether users would hardly notice a refork: no request waits, and few workers are busy.
        def quiet?
          waiting = @pool.reactors.waiting_for(@pool.number) || @pool.listeners.waiting.each_value.sum(&:to_i)
          workers = @pool.roster.ready_workers
          waiting.zero? && workers.count { |worker| worker.row.busy_since } <= workers.size * BUSY
        end

        private

        def shortage
          return "memory is short" if @pool.memory.short?

          percent = @pressure.call
          "memory is short (processes wait for it #{percent}% of the time)" if percent && percent > PRESSURE
        end
      end
    end
  end
end
