# frozen_string_literal: true

require "pando/refork/major_gc"
require "pando/refork/major_gc_deferral"
require "pando/refork/preparation"

module Pando
  module Refork
    # Runs minor collections in a worker between two requests, before Ruby would run one during a request, and in a node
    # while its jobs run (docs/sharing.md, Garbage). The cost of one is measured, and the next waits until the part that
    # counts is a given share of the worker's CPU time; half as long while the worker is idle.
    #
    # Under YJIT it runs no major collection. When Ruby wants one, GC.start would always be a major one. So nothing is
    # collected here, and Ruby collects when it must; unless major collections are deferred. Then each collection that
    # Ruby begins by itself makes the heap larger, so one of these has to come first. Without YJIT a major one is better
    # here than during a request. If the application has forbidden Ruby to run major ones by itself, they run here even
    # under YJIT, since they would run nowhere else.
    #
    # Made in a mold, started in each worker by its work.
    class Collector
      # New objects that are worth a collection; each has 40 bytes or more. The clock is read no more often.
      WORTH = 8192
      # The share is this many times higher while major collections are deferred: with each collection of its own, Ruby
      # then makes the heap larger.
      DEFERRED = 2
      # Of a collection's cost, the time of marking counts, and the sweep's share for slots that were free before; but
      # at least this many times the cost of the mold's first minor collection. The rest goes into the freeing of
      # garbage, which costs the same at any time. If that counted, each collection of an application that makes much
      # garbage would come later than the one before, and the heap would grow without end.
      LEAST = 4
      # A sweep visits free slots as well. To free an object takes about this many times as long.
      FREEING = 4
      # Ruby tells how long marking has taken, in whole milliseconds; from 3.3 on.
      MARKING = GC.stat.key?(:marking_time)

      # What collections have taken and freed so far. cpu: seconds of this thread, which runs them; marking:
      # milliseconds, nil: Ruby does not measure it.
      GCCounts = Struct.new(:cpu, :marking, :majors, :freed, :free) do
        def self.now
          marking = GC.stat(:marking_time) if MARKING && GC.measure_total_time
          new(Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID), marking, GC.stat(:major_gc_count),
              GC.stat(:total_freed_objects), GC.stat(:heap_free_slots))
        end

        # @return [Float] the share of a sweep, from this moment on, that went into slots that were free
        def passing(after) = free / (free + (FREEING * (after.freed - freed)) + 1.0)
      end

      # @param config [Configuration] @param replaceable [Boolean] whether the worker may ask to be replaced
      def self.for(config, replaceable: true)
        new(config.gc_between_requests, MajorGCDeferral.new(config.gc_major, replaceable: replaceable))
      end

      def initialize(percent, deferral = nil, major_gc: MajorGC)
        @share = percent && (percent / 100.0)
        @deferral = deferral
        @major_gc = major_gc
      end

      # In the new worker. If its mold has measured the cost of a collection, the worker need not measure it at once, in
      # the midst of its first requests, which are expensive enough.
      def start(worker = nil)
        return unless @share

        @deferral&.start(worker)
        begin_anew(Preparation.minor_gc_seconds || 0.0)
      end

      # Called after each request, or while jobs run.
      # @yieldreturn [Boolean] whether no job waits
      def between
        return unless @share

        @deferral.look if deferred? # a heap can grow with few objects
        return if (allocated = GC.stat(:total_allocated_objects)) - @allocated < WORTH

        @allocated = allocated # the next look comes after as many
        return begin_anew if GC.count != @count # Ruby has collected

        collect if cpu - @collected_at >= (yield ? @wait / 2 : @wait)
      end

      # @return [Boolean] whether major collections are deferred in this worker
      def deferred? = !!@deferral&.on?

      private

      def collect
        return begin_anew if @major_gc.wanted && @major_gc.unshares? && !deferred? && @major_gc.allowed?

        before = GCCounts.now
        deferred? && @major_gc.possible? ? @major_gc.minor_only : GC.start(full_mark: false, immediate_sweep: true)
        after = GCCounts.now
        begin_anew(after.majors == before.majors ? counted(before, after) : @cost)
      end

      # @return [Float] seconds
      def counted(before, after)
        cost = after.cpu - before.cpu
        price = Preparation.minor_gc_seconds
        return cost unless price && before.marking && after.marking

        marking = [(after.marking - before.marking) / 1000.0, cost].min
        part = [marking + ((cost - marking) * before.passing(after)), price * LEAST].max
        [part, cost].min
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
