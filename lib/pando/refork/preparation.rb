# frozen_string_literal: true

module Pando
  module Refork
    # Prepares the heap of a mold before it forks: once, instead of in each of its workers, where it would make shared
    # pages private. In the mold.
    #
    # @api private
    module Preparation
      # Collections that an object survives before it counts as old.
      AGES = 3
      # Before this Ruby, hashes did not find some of their keys after the heap was compacted (its bug 20853).
      COMPACTS = [3, 3, 6].freeze

      class << self
        # @return [Float, nil] seconds of CPU time that a minor collection took after the preparation; nil: unknown
        attr_accessor :minor_gc_seconds
      end

      # @return [Boolean] whether this process's last mold, or this mold, was a worker before: then what its workers
      #   share is warm
      def self.warm? = !!@warm

      # @param ruby [String] a version
      # @return [:promote, :warmup] what `:auto` stands for. New objects fill the free places of the heap: the fewer
      #   pages those are on, the more pages stay shared. So the heap is compacted where that is safe.
      def self.usual(ruby = RUBY_VERSION)
        (ruby.split(".").map(&:to_i) <=> COMPACTS).negative? ? :promote : :warmup
      end

      # @param manner [:auto, :promote, :warmup, nil] the `gc mold:` setting
      def self.run(manner)
        @first ||= Process.pid
        @warm = Process.pid != @first
        case manner == :auto ? usual : manner
        when :warmup then Process.respond_to?(:warmup) ? Process.warmup : promote
        when :promote then promote
        end
        self.minor_gc_seconds = manner && time_minor_gc
        nil
      end

      # Makes all objects old. The first collection is a major one, for all garbage; the others are minor.
      def self.promote = AGES.times { |time| GC.start(full_mark: time.zero?) }

      # @return [Float]
      def self.time_minor_gc
        before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
        GC.start(full_mark: false)
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before
      end
      private_class_method :promote, :time_minor_gc
    end
  end
end
