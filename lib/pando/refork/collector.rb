# frozen_string_literal: true

require "pando/refork/major_gc"
require "pando/refork/preparation"

module Pando
  module Refork
    # Collects a worker's young garbage between two jobs, before Ruby would do so in one. Ruby first fills all the room
    # that it has for new objects, a share of the whole heap: in a worker that shares a large heap with its mold, that
    # is many pages of its own. Collected often, the same few are used again and again.
    #
    # Never a full collection under YJIT: it writes to what is shared (docs/sharing.md). Where Ruby wants one, GC.start
    # would be that one, whatever it is asked for; so nothing is done then, and Ruby has its way when it must. Without
    # YJIT it is better done here than in a request. What a young one costs is measured, and the next one waits until it
    # is a given share of the worker's CPU time; while others have nothing to do either, half as long.
    #
    # Made in a mold, started in each worker by its work.
    class Collector
      # Objects that are worth it; each has 40 bytes and more.
      WORTH = 8192
      # Seconds between two looks at the clock and the counters, roughly.
      LOOK = 0.005
      SKIPPED_AT_MOST = 128
      # Times its share, while full collections are put off: one of Ruby's own would find too little free, and in place
      # of a full collection, which takes longer than all of these, Ruby would take more memory.
      POSTPONED = 3

      # @param percent [Numeric, nil] of the worker's CPU time; nil: it is Ruby's own business
      # @param postponement [MajorGCDeferral, nil] of full collections, looked at in between
      # @param full_marks [#wanted, #dear?]
      def initialize(percent, postponement = nil, full_marks: MajorGC)
        @share = percent && (percent / 100.0)
        @postponement = postponement
        @full_marks = full_marks
      end

      # In the new worker. Where its mold knows what a collection costs, the first one need not show it at once: in the
      # midst of the first requests, which are dear enough.
      # @param worker [Cluster::Worker, nil] for the postponement
      # @return [void]
      def start(worker = nil)
        @postponement&.start(worker) if @share
        @skip = 1
        @left = 0
        @looked_at = Sys.now
        note(cpu, Preparation.price || 0.0)
      end

      # After some jobs.
      # @yieldreturn [Boolean] whether nobody waits for the next one
      # @return [void]
      def between
        return unless @share && (@left -= 1).negative?

        pace
        @postponement.look if postponed?
        collect if due?(yield)
      end

      private

      def postponed? = !!@postponement&.on?
      def share = @share * (postponed? ? POSTPONED : 1)

      # The more jobs there are, the more of them go by without a look.
      def pace
        now = Sys.now
        @skip = now - @looked_at < LOOK ? [@skip * 2, SKIPPED_AT_MOST].min : [@skip / 2, 1].max
        @left = @skip
        @looked_at = now
      end

      def due?(idle)
        return note(cpu, @cost) && false if GC.count != @count # Ruby was faster
        return false if GC.stat(:total_allocated_objects) - @allocated < WORTH

        cpu - @collected_at >= (idle ? @wait / 2 : @wait)
      end

      def collect
        return note(cpu, @cost) if @full_marks.wanted && @full_marks.dear?

        before = cpu
        full = GC.stat(:major_gc_count)
        GC.start(full_mark: false, immediate_sweep: true)
        note(cpu, GC.stat(:major_gc_count) == full ? cpu - before : @cost)
      end

      def note(now, cost)
        @collected_at = now
        @cost = cost
        @wait = @share ? cost / share : 0.0
        @count = GC.count
        @allocated = GC.stat(:total_allocated_objects)
      end

      def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    end
  end
end
