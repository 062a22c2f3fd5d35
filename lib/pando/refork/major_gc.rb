# frozen_string_literal: true

require "pando/events"
require "pando/fork_safety/registration"
require "pando/refork/preparation"
require "pando/sys/memory"
require "pando/yjit"

module Pando
  module Refork
    # What Ruby tells about major collections of this process, those that mark the whole heap, and what it can be told.
    #
    # @api private
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

        # Whether one writes to shared pages: under YJIT, to all its data about compiled methods.
        def unshares? = YJIT.enabled?
      end
    end

    # Defers major collections in a worker, because one makes pages private that the worker shares with its mold: under
    # YJIT a good part of what a refork has gained (docs/sharing.md). The cost is growth, since garbage among old
    # objects stays. When the worker has grown by a part of its size after the fork, and Ruby wants a major collection,
    # it asks to be replaced; when it has grown by more and was not replaced, the collection is allowed. Nothing is
    # deferred before the first refork: then a worker warms up by itself, and its heap grows for that.
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

      # @param wanted [#call] why Ruby wants a major collection; nil: it does not
      def initialize(setting, size: -> { resident }, wanted: MajorGC.method(:wanted), warm: Preparation.method(:warm?))
        @setting = setting
        @size = size
        @wanted = wanted
        @warm = warm
        @on = false
      end

      # In the new worker.
      # @param worker [Cluster::Worker] the one that asks to be replaced
      def start(worker)
        wished = @setting == :postpone || (@setting == :auto && MajorGC.unshares?)
        @on = wished && @warm.call && MajorGC.obstacle.nil?
        return unless @on

        @worker = worker
        @size_at_fork = @size.call
        @garbage = false
        @check_at = Sys.now + TICK
        # The processes that this one forks, the next mold or the application's own, collect as usual.
        ForkSafety.register(KEY, child: -> { MajorGC.allowed = true })
        MajorGC.allowed = false
      end

      def on? = @on

      # Called between two jobs.
      def look(now = Sys.now)
        return if now < @check_at

        @check_at = now + TICK
        cause = @wanted.call
        @garbage ||= !cause.nil? && cause != ROOM
        grown = @size.call - @size_at_fork
        limit = [@size_at_fork * WORTH, WORTH_BYTES].max
        return allow if grown >= limit * MOST

        ask_for_replacement(cause) if @garbage && grown >= limit
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
      def resident = File.read("/proc/self/statm").split[1].to_i * Sys::Memory::PAGE
    end
  end
end
