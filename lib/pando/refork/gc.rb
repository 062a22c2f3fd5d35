# frozen_string_literal: true

require "pando/events"
require "pando/sys"
require "pando/sys/memory"
require "pando/yjit"

module Pando
  module Refork
    # Prepares the heap of a mold before it forks: once, instead of in each of its workers, where it would make shared
    # pages private. In the mold.
    module Preparation
      # Collections that an object survives before it counts as old.
      AGES = 3
      # Before this Ruby, hashes did not find some of their keys after the heap was compacted (its bug 20853).
      COMPACTS = [3, 3, 6].freeze
      # Seconds of CPU time that copying the memory may take.
      COPYING = 5.0

      class << self
        # @return [Float, nil] seconds of CPU time that a minor collection took after the preparation; nil: unknown
        attr_accessor :minor_gc_seconds
      end

      # @return [Boolean] whether this process's last mold, or this mold, was a worker before: then what its workers
      #   share is warm
      def self.warm? = !!@warm

      # This process is the first mold of a pool, forked from that of another pool: its workers share nothing warm yet.
      def self.begin_anew = @first = Process.pid

      # @return [:promote, :warmup] what `:auto` stands for. New objects fill the free places of the heap: the fewer
      #   pages those are on, the more pages stay shared. So the heap is compacted where that is safe.
      def self.usual(ruby = RUBY_VERSION)
        (ruby.split(".").map(&:to_i) <=> COMPACTS).negative? ? :promote : :warmup
      end

      # @param prefault [Hash, Boolean] whether it copies at once what the last mold's preparation has written to
      def self.run(manner, prefault: true)
        @first ||= Process.pid
        @warm = Process.pid != @first
        return self.minor_gc_seconds = nil unless manner

        prefault &&= warm?
        copy_what_the_last_mold_wrote if prefault
        collect(manner == :auto ? usual : manner)
        self.minor_gc_seconds = time_minor_gc
        note_what_was_written if prefault
        nil
      end

      def self.collect(manner)
        manner == :warmup && Process.respond_to?(:warmup) ? Process.warmup : promote
      end

      # A collection reads nearly all memory and writes to much of it, in each mold to nearly the same pages. The kernel
      # copies a page for less than a fault takes, above all in a virtual machine, where a first write takes three times
      # as long after a read (docs/reforking.md, Prefault).
      def self.copy_what_the_last_mold_wrote
        @written&.populate(@written.bytes, COPYING)
      rescue SystemCallError
        nil # they are copied one by one
      end

      def self.note_what_was_written
        return unless Sys::HotSet.supported?

        (@written ||= Sys::HotSet.new).observe_own
      rescue SystemCallError
        @written = nil
      end

      # Makes all objects old. The first collection is a major one, for all garbage; the others are minor.
      def self.promote = AGES.times { |time| GC.start(full_mark: time.zero?) }

      def self.time_minor_gc
        before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
        GC.start(full_mark: false)
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before
      end
      private_class_method :collect, :copy_what_the_last_mold_wrote, :note_what_was_written, :promote, :time_minor_gc
    end

    # What Ruby tells about major collections of this process, those that mark the whole heap, and what it can be told.
    module MajorGC
      # GC.config, from Ruby 3.4 on, and not with every garbage collector that Ruby can be built with.
      POSTPONABLE = GC.respond_to?(:config) && GC.config.key?(:rgengc_allow_full_mark)
      # Not with Ruby 3.1.
      FORETOLD = GC.latest_gc_info.key?(:need_major_by)

      class << self
        # @return [String, nil] why major collections cannot be deferred; nil: they can
        def obstacle
          "Ruby #{RUBY_VERSION} has no GC.config(rgengc_allow_full_mark:), which takes 3.4 or newer" unless POSTPONABLE
        end

        def allowed? = !POSTPONABLE || GC.config[:rgengc_allow_full_mark]

        # Concerns only collections that Ruby starts by itself, not GC.start.
        def allowed=(allowed)
          GC.config(rgengc_allow_full_mark: allowed) if POSTPONABLE
        end

        # @return [Symbol, nil] why the next collection will be a major one; then GC.start makes it one in any case
        def wanted = (GC.latest_gc_info(:need_major_by) if FORETOLD)

        # Whether GC.start may run a major one: Ruby wants that, or may find so at the end of a sweep, which comes
        # first.
        def possible? = !wanted.nil? || GC.latest_gc_info(:state) != :none

        # Runs a minor collection in any case, while major ones are not allowed. With GC.stress, which knows nothing of
        # what Ruby wants, each new object begins with a collection.
        def minor_only
          return if GC.stress # the application's own

          begin
            GC.stress = 1 # no major ones
            []
          ensure
            GC.stress = false
          end
        end

        # Whether one writes to shared pages: under YJIT, to all its data about compiled methods.
        def unshares? = YJIT.enabled?
      end
    end

    # Defers major collections in a worker to the next mold, because one makes pages private that the worker shares with
    # its mold (docs/sharing.md, Full collections). Nothing is deferred before the first refork: then a worker warms up
    # by itself, and its heap grows for that.
    #
    # Made in a mold, started in each worker by its work.
    class MajorGCDeferral
      # Seconds between two checks.
      TICK = 1.0
      KEY = "Pando's full collections"
      # Growth at which the worker had better be replaced: a share of its size, and the least in bytes.
      WORTH = 0.15
      WORTH_BYTES = 16 * (1024**2)
      # Collections are allowed again at this many times that growth.
      MOST = 3
      # Ruby wants a collection for lack of free slots: it adds slots instead, and there is no garbage in that.
      ROOM = :nofree

      # @param replaceable [Boolean] whether the worker may ask to be replaced; if not, collections are allowed again
      #   when it would have asked
      # @param wanted [#call] why Ruby wants a major collection; nil: it does not
      def initialize(setting, replaceable: true, size: -> { resident }, wanted: MajorGC.method(:wanted),
                     warm: Preparation.method(:warm?))
        @setting = setting
        @replaceable = replaceable
        @size = size
        @wanted = wanted
        @warm = warm
        @on = false
      end

      # In the new worker.
      def start(worker)
        wished = @setting == :postpone || (@setting == :auto && MajorGC.unshares?)
        @size_at_fork = (@size.call if wished && @warm.call && MajorGC.obstacle.nil?)
        @on = !@size_at_fork.nil?
        return unless @on

        @worker = worker
        @garbage = false
        @check_at = Sys.now + TICK
        # The processes that this one forks, the next mold or the application's own, collect as usual.
        require "pando/fork_safety/callbacks" # not in the monitor, which loads this file as well
        ForkSafety.register(KEY, child: -> { MajorGC.allowed = true })
        MajorGC.allowed = false
      end

      def on? = @on

      # Called after a job, or while jobs run.
      def look(now = Sys.now)
        return if now < @check_at

        @check_at = now + TICK
        cause = @wanted.call
        @garbage ||= !cause.nil? && cause != ROOM
        size = @size.call or return
        grown = size - @size_at_fork
        limit = [@size_at_fork * WORTH, WORTH_BYTES].max
        return allow if grown >= limit * MOST
        return unless @garbage && grown >= limit

        @replaceable ? ask_for_replacement(cause) : allow
      end

      private

      # The monitor may let it serve for long before it replaces it.
      def ask_for_replacement(cause)
        return if @worker.major_gc_due?

        @worker.major_gc_due = true
        tell("gc.major_due", cause: cause)
      end

      def allow
        @on = false
        @worker.major_gc_due = false
        MajorGC.allowed = true
        tell("gc.major_allowed")
      end

      def tell(event, **more)
        Events.emit(event, slot: @worker.slot, generation: @worker.generation, pid: Process.pid, **more)
      end

      # Takes a few microseconds.
      # @return [Integer, nil] bytes; nil: the process has no descriptor left, for instance
      def resident
        File.read("/proc/self/statm").split[1].to_i * Sys::Memory::PAGE
      rescue SystemCallError
        nil
      end
    end

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
