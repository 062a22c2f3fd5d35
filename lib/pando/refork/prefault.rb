# frozen_string_literal: true

require "pando/cluster"
require "pando/events"
require "pando/sys"

module Pando
  module Refork
    # Gives each new worker two sets of pages before it serves: copies of those that its mold's first worker has written
    # to (the hot set), and the pages of code that the mold's source worker has mapped. docs/reforking.md says why.
    #
    # Made in a mold that boots, and inherited by all that is forked from it. A worker forgets the sets once they are
    # used, so that a mold that it becomes begins without a hot set.
    class Prefault
      NO_LIMIT = 1 << 40 # bytes: code is not copied

      def initialize(bytes:, milliseconds:)
        @bytes = bytes
        @seconds = milliseconds / 1000.0
        @hot_set = Sys::HotSet.new
        @code = Sys::HotSet.new
      end

      # In a worker that is about to fork a mold. A fork does not copy the page tables of code, so without this each new
      # worker would map all pages of code again, fault by fault.
      def note_code(worker)
        @code.observe_code if Sys::HotSet.supported?
      rescue SystemCallError => e
        Events.emit("prefault.unavailable", generation: worker.generation, reason: e.message)
      end

      def observe(mold, pagemap)
        began = Sys.now
        @hot_set.observe(pagemap)
        Events.emit("prefault.prepared", generation: mold.generation, pid: Pando.pid, bytes: @hot_set.bytes,
                                         ranges: @hot_set.ranges, seconds: (Sys.now - began).round(4))
      rescue SystemCallError => e
        Events.emit("prefault.unavailable", generation: mold.generation, reason: e.message)
      end

      # In a worker that has just been forked. Pages that the kernel refuses come fault by fault.
      def populate(worker)
        bytes, seconds = @hot_set.populate(@bytes, @seconds)
        seconds += @code.populate(NO_LIMIT, @seconds - seconds).last
        worker.row.prefault(bytes, seconds) if bytes.positive?
      rescue SystemCallError
        nil
      ensure
        [@code, @hot_set].each(&:clear)
      end

      # Tells each mold once to learn the pages that its first worker writes to: when that worker has served enough to
      # show them, or when the other workers are about to be forked. Nothing waits for it: the mold reads this order
      # before those that follow.
      #
      # Owned by a Pool, in the monitor.
      class Orders
        include Cluster::Brief

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
          File.open("/proc/#{worker.pid}/pagemap", "rb") do |file|
            mold.order(Cluster::Message.new(:observe), [file])
          end
        rescue Errno::ENOENT, Errno::ESRCH
          false # it has just ended
        rescue Errno::EACCES, Errno::EPERM => e
          give_up(e.message)
        end

        def give_up(reason)
          Events.emit("prefault.unavailable", reason: reason)
          @supported = false
        end
      end
    end
  end
end
