# frozen_string_literal: true

require "pando/events"
require "pando/sys"

module Pando
  module Refork
    # Gives each new worker two sets of pages before it serves: copies of those that its mold's first worker has written
    # to (the hot set), and the pages of code that the mold's source worker has mapped. docs/reforking.md says why.
    #
    # Until a mold knows its hot set, its workers get a guess: the hot set of the mold before it.
    #
    # Made in a mold that boots, and inherited by all that is forked from it.
    class Prefault
      NO_LIMIT = 1 << 40 # bytes: code is not copied

      def initialize(bytes:, milliseconds:)
        @bytes = bytes
        @seconds = milliseconds / 1000.0
        @hot_set = Sys::HotSet.new
        @guess = Sys::HotSet.new
        @code = Sys::HotSet.new
        @molds = 0 # in this process's line
      end

      # Whether the monitor may read a worker's memory: from 2 on, Yama leaves that to administrators (ptrace(2)).
      def self.may_guess?
        File.read("/proc/sys/kernel/yama/ptrace_scope").to_i < 2
      rescue SystemCallError
        true
      end

      # In a mold that is prepared and has not forked yet. Its workers share the memory of its hot set. So each of them
      # can hand it down to the next mold, also one that was forked before this mold knew it.
      def begin_mold(mold)
        unless_refused(mold) { begin_guess }
        unless_refused(mold) { @hot_set.share }
      end

      # In a worker that is about to fork a mold. A fork does not copy the page tables of code, so without this each new
      # worker would map all pages of code again, fault by fault.
      def note_code(worker)
        unless_refused(worker) { @code.observe_code } if Sys::HotSet.supported?
      end

      # @param memory [Integer, nil] of the worker with this pagemap; tells which of the guessed pages it has written to
      def observe(mold, pagemap, memory = nil)
        began = Sys.now
        unless_refused(mold) do
          @hot_set.observe(pagemap, @guess, memory)
          Events.emit("prefault.prepared", generation: mold.generation, pid: Pando.pid, bytes: @hot_set.bytes,
                                           ranges: @hot_set.ranges, seconds: (Sys.now - began).round(4))
        end
      end

      # In a worker that has just been forked. Pages that the kernel refuses come fault by fault.
      def populate(worker)
        known = @hot_set.ranges.positive?
        worker.row.prefault_guessed! unless known
        bytes, seconds = (known ? @hot_set : @guess).populate(@bytes, @seconds)
        seconds += @code.populate(NO_LIMIT, @seconds - seconds).last
        worker.row.prefault(bytes, seconds) if bytes.positive?
      rescue SystemCallError
        nil
      ensure
        @code.clear
        protect
      end

      # In a new process that does not need the hot set of the mold that it was forked from, except to hand it down.
      def protect = @hot_set.protect

      private

      # By the last mold's hot set, or if that mold did not come to know it, by its guess. Workers of a cold-booted mold
      # fill caches that those of the next mold find filled, so they write to much else.
      def begin_guess
        @molds += 1
        last = @hot_set.ranges.positive? ? @hot_set : @guess
        return if @molds <= 2 || last.ranges.zero?

        guess = Sys::HotSet.new
        guess.guess(last) if Prefault.may_guess?
        @guess.clear
        @guess = guess
      end

      # @param role [Cluster::Mold, Cluster::Worker] of this process
      def unless_refused(role)
        yield
      rescue SystemCallError, NoMemoryError => e
        Events.emit("prefault.unavailable", generation: role.generation, reason: e.message)
      end
    end
  end
end
