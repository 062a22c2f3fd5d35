# frozen_string_literal: true

require "pando/sys/memory"

module Pando
  module Cluster
    class Generations
      # Whether this is the moment for a refork that nobody has asked for: not while something else is going on, nor
      # while memory is short, since for a while there are more processes than before; and rather while few requests
      # are served.
      #
      # Owned by the monitor.
      #
      # @api private
      class Conditions
        # Percent of the time that somebody waits for memory (PSI), from which on it is short.
        PRESSURE = 10.0
        # The share of the workers that may be busy in a quiet moment.
        BUSY = 0.5
        # There is nothing else.
        NONE = Struct.new(:obstacle, :quiet?, :occupation).new(nil, true).freeze

        # @param cluster [#reload, #drain, #memory, #reactors, #listeners, #roster] the monitor
        # @param pressure [#call] percent, or nil
        def initialize(cluster, pressure: Sys::Memory.method(:pressure))
          @cluster = cluster
          @pressure = pressure
        end

        # @return [String, nil]
        def obstacle = occupation || shortage

        # What else is going on.
        # @return [String, nil]
        def occupation
          return "a reload is under way" if @cluster.reload.under_way?

          "the server drains" if @cluster.drain.begun?
        end

        # @return [Boolean] whether hardly anybody would notice
        def quiet? = waiting.zero? && busy <= BUSY

        private

        def shortage
          return "memory is short" if @cluster.memory.short?

          waiting = @pressure.call
          "memory is short (#{waiting}% of the time somebody waits for it)" if waiting && waiting > PRESSURE
        end

        # Requests that no worker has taken yet.
        def waiting
          queue = @cluster.reactors.state
          queue ? queue[:waiting] : @cluster.listeners.waiting.each_value.sum(&:to_i)
        end

        def busy
          workers = @cluster.roster.ready_workers
          workers.count { |worker| worker.row.busy_since } / [workers.size, 1].max.to_f
        end
      end
    end
  end
end
