# frozen_string_literal: true

require "pando/refork/prefault"

module Pando
  module Cluster
    class Generations
      # Tells each mold once to learn the pages that its first worker writes to: when that worker has served enough to
      # show them, or when the other workers are about to be forked. Nothing waits for it: the mold reads this order
      # before those that follow.
      #
      # Owned by a Pool, in the monitor.
      class PrefaultOrders
        include Brief

        # Requests after which a worker has written to most of the pages that all workers write to, and to few others.
        ENOUGH = 100
        # The fewest requests that are worth it, when the other workers are about to be forked.
        LEAST = 20

        def initialize(roster, generations, options)
          @roster = roster
          @generations = generations
          @options = options
        end

        def reconcile
          return unless @options.prefault && supported?

          [@generations.current, @generations.upcoming].compact.each { |generation| look(generation) }
        end

        private

        def supported?
          return @supported unless @supported.nil?

          @supported = Sys::HotSet.supported? || give_up("the kernel has no MADV_POPULATE_WRITE (Linux 5.14)")
        end

        def look(generation)
          return if generation.observed? || !generation.forks?

          workers = @roster.ready_workers.select { |worker| worker.generation == generation.number }
          worker = workers.max_by(&:requests)
          return unless worker && worker.requests >= (generation.rolling? ? LEAST : ENOUGH)

          generation.observed! if order(generation.mold, worker)
        end

        def order(mold, worker)
          files = [File.open("/proc/#{worker.pid}/pagemap", "rb")]
          files += memory(worker)
          mold.order(Message.new(:observe), files)
        rescue Errno::ENOENT, Errno::ESRCH
          false # it has just ended
        rescue Errno::EACCES, Errno::EPERM => e
          give_up(e.message)
        ensure
          files&.each(&:close)
        end

        # It tells which pages of the guess the worker has written to. The monitor opens it, since the kernel may let
        # only the worker's parent do so (ptrace(2)).
        # @return [Array<File>]
        def memory(worker)
          Refork::Prefault.may_guess? ? [File.open("/proc/#{worker.pid}/mem", "rb")] : []
        rescue Errno::EACCES, Errno::EPERM
          []
        end

        def give_up(reason)
          Events.emit("prefault.unavailable", reason: reason)
          @supported = false
        end
      end
    end
  end
end
