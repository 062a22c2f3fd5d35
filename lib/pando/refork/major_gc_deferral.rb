# frozen_string_literal: true

require "pando/events"
require "pando/refork/major_gc"
require "pando/sys"
require "pando/sys/memory"

module Pando
  module Refork
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
  end
end
