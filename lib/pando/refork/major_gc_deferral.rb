# frozen_string_literal: true

require "pando/events"
require "pando/fork_safety/registration"
require "pando/refork/deferral"
require "pando/refork/major_gc"
require "pando/refork/preparation"
require "pando/sys/memory"

module Pando
  module Refork
    # Has Ruby do without full collections in a worker, for one makes pages private that it shares with its mold: under
    # YJIT a good part of what a refork has gained (docs/sharing.md). The next mold does it instead, or the worker is
    # replaced; not for ever, see Deferral. Before the first refork there is nothing to lose:
    # a worker warms up by itself then, and its heap grows for that.
    #
    # Made in a mold, started in each worker by its work.
    class MajorGCDeferral
      # Seconds between two looks.
      TICK = 1.0
      KEY = "Pando's full collections"

      # @param setting [:auto, :postpone, :ruby] `gc major:`
      # @param size [#call] bytes of this process that are in memory
      # @param wanted [#call] why Ruby wants a full collection; nil: it does not
      # @param warm [#call] whether there was a refork
      def initialize(setting, size: lambda {
        resident
      }, wanted: MajorGC.method(:wanted), warm: Preparation.method(:warm?))
        @setting = setting
        @size = size
        @wanted = wanted
        @warm = warm
      end

      # In the new worker.
      # @param worker [Cluster::Worker] who is told to be replaced
      # @return [void]
      def start(worker)
        @deferral = nil
        return unless @warm.call && worth? && MajorGC.obstacle.nil?

        @worker = worker
        @deferral = Deferral.new(@size.call)
        @look_at = Sys.now + TICK
        # Whatever this process forks, the next mold or a process of the application's own, is to have them.
        ForkSafety.register(KEY, child: -> { MajorGC.allowed = true })
        MajorGC.allowed = false
      end

      # @return [Boolean]
      def on? = !@deferral.nil?

      # Now and then between two jobs.
      # @return [void]
      def look(now = Sys.now)
        return if now < @look_at

        @look_at = now + TICK
        cause = @wanted.call
        case @deferral.look(@size.call, cause)
        when :replace then ask(cause)
        when :give_in then give_in
        end
      end

      private

      def worth? = @setting == :postpone || (@setting == :auto && MajorGC.dear?)

      # It may be long until that suits the others.
      def ask(cause)
        return if @worker.major_gc_due?

        @worker.major_gc_due = true
        tell("gc.major_due", cause: cause)
      end

      def give_in
        @deferral = nil
        @worker.major_gc_due = false
        MajorGC.allowed = true
        tell("gc.major_allowed")
      end

      def tell(event, **more)
        Events.emit(event, slot: @worker.slot, generation: @worker.generation, pid: Process.pid, **more)
      end

      PAGES = /\A\d+ (\d+)/
      private_constant :PAGES

      # A few microseconds.
      def resident = File.read("/proc/self/statm")[PAGES, 1].to_i * Sys::Memory::PAGE
    end
  end
end
