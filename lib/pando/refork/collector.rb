# frozen_string_literal: true

require "pando/refork/major_gc"
require "pando/refork/preparation"

module Pando
  module Refork
    # Runs minor collections in a worker between two jobs, before Ruby would run one during a job. Ruby first fills all
    # the room for new objects, a share of the whole heap: in a worker that shares a large heap with its mold, that
    # makes many pages private. With frequent collections the same few pages are used again and again.
    #
    # It runs no major collection under YJIT, since that writes to shared pages (docs/sharing.md). When Ruby wants one,
    # GC.start would always be a major one; so nothing is collected here, and Ruby collects when it must. Without
    # YJIT a major collection is better here than during a request. The cost of a minor one is measured, and the next
    # waits until that is a given share of the worker's CPU time; half as long while the worker is idle.
    #
    # Made in a mold, started in each worker by its work.
    class Collector
      # New objects that are worth a collection; each has 40 bytes or more. The clock is read no more often.
      WORTH = 8192
      # The share is this many times higher while major collections are deferred: a collection of Ruby's own would
      # find too little garbage, and Ruby would take more memory in place of a major one, which takes longer than these.
      DEFERRED = 3

      # @param percent [Numeric, nil] of the worker's CPU time; nil: only Ruby collects
      # @param deferral [MajorGCDeferral, nil] checked between jobs
      def initialize(percent, deferral = nil, major_gc: MajorGC)
        @share = percent && (percent / 100.0)
        @deferral = deferral
        @major_gc = major_gc
      end

      # In the new worker. If its mold has measured the cost of a collection, the worker need not measure it at once, in
      # the midst of its first requests, which are expensive enough.
      # @param worker [Cluster::Worker, nil] for the deferral
      def start(worker = nil)
        return unless @share

        @deferral&.start(worker)
        begin_anew(Preparation.minor_gc_seconds || 0.0)
      end

      # Called after each job.
      # @yieldreturn [Boolean] whether no job waits
      def between
        return if @share.nil? || (allocated = GC.stat(:total_allocated_objects)) - @allocated < WORTH

        @allocated = allocated # the next look comes after as many
        @deferral.look if deferred?
        return begin_anew if GC.count != @count # Ruby has collected

        collect if cpu - @collected_at >= (yield ? @wait / 2 : @wait)
      end

      private

      def deferred? = !!@deferral&.on?

      def collect
        return begin_anew if @major_gc.wanted && @major_gc.unshares?

        before = cpu
        major = GC.stat(:major_gc_count)
        GC.start(full_mark: false, immediate_sweep: true)
        begin_anew(GC.stat(:major_gc_count) == major ? cpu - before : @cost)
      end

      # @param cost [Float] seconds of CPU time that a minor collection takes
      def begin_anew(cost = @cost)
        @collected_at = cpu
        @cost = cost
        @wait = cost / (@share * (deferred? ? DEFERRED : 1))
        @count = GC.count
        @allocated = GC.stat(:total_allocated_objects)
      end

      def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    end
  end
end
