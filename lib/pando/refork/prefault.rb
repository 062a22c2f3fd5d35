# frozen_string_literal: true

require "pando/events"
require "pando/sys"

module Pando
  module Refork
    # A new worker shares all memory with its mold, and each page that it writes to costs a fault first: most of them in
    # its first requests, and nearly the same ones in each worker. So the mold looks at what its first worker has
    # written to (its hot set), and each later one is given its own copies of those pages at once, before it serves
    # anybody.
    #
    # Made in a mold that boots, inherited by all that is forked from it. A worker has no use for the set afterwards: so
    # the mold that it may become begins without one.
    #
    # @api private
    class Prefault
      # @param bytes [Integer] that a worker is given at most
      # @param milliseconds [Numeric] that it may take
      def initialize(bytes:, milliseconds:)
        @bytes = bytes
        @seconds = milliseconds / 1000.0
        @hot_set = Sys::HotSet.new
      end

      # In the mold.
      # @param mold [Cluster::Mold]
      # @param pagemap [Integer] a descriptor of /proc/PID/pagemap of one of its workers
      def observe(mold, pagemap)
        began = Sys.now
        @hot_set.observe(pagemap)
        Events.emit("prefault.prepared", generation: mold.generation, pid: Pando.pid, bytes: @hot_set.bytes,
                                         ranges: @hot_set.ranges, seconds: (Sys.now - began).round(4))
      rescue SystemCallError => e
        Events.emit("prefault.unavailable", generation: mold.generation, reason: e.message)
      end

      # In a worker that has just been forked. What the kernel does not give it comes fault by fault.
      # @param worker [Cluster::Worker]
      def populate(worker)
        worker.row.prefault(*@hot_set.populate(@bytes, @seconds)) if @hot_set.bytes.positive?
      rescue SystemCallError
        nil
      ensure
        @hot_set.clear
      end
    end
  end
end
