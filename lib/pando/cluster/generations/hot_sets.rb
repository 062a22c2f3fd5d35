# frozen_string_literal: true

require "pando/cluster/message"
require "pando/events"

module Pando
  module Cluster
    class Generations
      # Has each mold look, once, at what its first worker writes to, so that the next ones need not find that out page
      # by page: when the worker has served enough to show it, or when the others are about to be forked. Nobody waits
      # for it: the mold reads its order before those that follow.
      #
      # Owned by the monitor.
      #
      # @api private
      class HotSets
        # Requests after which a worker has written to most of what all of them write to, and hardly to more.
        ENOUGH = 100
        # The least that is worth a look, when the others are about to follow.
        LEAST = 20

        # @param generations [#current, #upcoming]
        # @param options [#prefault]
        def initialize(roster, generations, options)
          @roster = roster
          @generations = generations
          @options = options
          @able = nil
        end

        # Called at each turn of the monitor's loop, before new workers are ordered.
        def reconcile
          return unless @options.prefault && able?

          [@generations.current, @generations.upcoming].compact.each { |generation| look(generation) }
        end

        private

        # Asked once: a kernel does not learn it.
        def able?
          return @able unless @able.nil?

          @able = Sys::HotSet.supported? || give_up("the kernel has no MADV_POPULATE_WRITE (Linux 5.14)")
        end

        def look(generation)
          return if generation.observed? || !generation.forks?

          worker = best_of(generation.number)
          return unless worker && worker.requests >= (generation.rolling? ? LEAST : ENOUGH)

          generation.observed! if order(generation.mold, worker)
        end

        def best_of(number)
          @roster.ready_workers.select { |worker| worker.generation == number }.max_by(&:requests)
        end

        def order(mold, worker)
          File.open("/proc/#{worker.pid}/pagemap", "rb") { |file| mold.order(Message.new(:observe), [file]) }
        rescue Errno::ENOENT, Errno::ESRCH
          false # it has just ended
        rescue Errno::EACCES, Errno::EPERM => e
          give_up(e.message)
        end

        # @return [false]
        def give_up(reason)
          Events.emit("prefault.unavailable", reason: reason)
          @able = false
        end
      end
    end
  end
end
