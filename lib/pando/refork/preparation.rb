# frozen_string_literal: true

require "pando/sys"

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
  end
end
