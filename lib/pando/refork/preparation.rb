# frozen_string_literal: true

module Pando
  module Refork
    # What is done with the heap of a mold before it forks: once, and not in each of its workers, where it would make
    # shared pages private.
    #
    # @api private
    module Preparation
      # Collections that an object survives before it counts as old.
      AGES = 3
      # Before this Ruby, hashes did not find some of their keys after the heap was compacted (its bug 20853).
      COMPACTS = [3, 3, 6].freeze

      class << self
        # @return [Float, nil] seconds of CPU time that a collection of young garbage took when all was prepared; nil:
        #   nobody knows
        attr_accessor :price
      end

      # @return [Boolean] the mold that has prepared itself last, this process's own, was a worker before: what its
      #   workers share is warm
      def self.warm? = !!@warm

      # @param ruby [String] a version
      # @return [:promote, :warmup] what `:auto` stands for. New objects go into whatever is free in the heap: the fewer
      #   pages that is spread over, the more of them stay shared, so the heap is compacted where that is safe.
      def self.usual(ruby = RUBY_VERSION)
        (ruby.split(".").map(&:to_i) <=> COMPACTS).negative? ? :promote : :warmup
      end

      # @param manner [:auto, :promote, :warmup, nil] the `gc mold:` setting
      # @return [nil]
      def self.run(manner)
        @first ||= Process.pid
        @warm = Process.pid != @first
        case manner == :auto ? usual : manner
        when :warmup then Process.respond_to?(:warmup) ? Process.warmup : promote
        when :promote then promote
        end
        self.price = manner && one_more
        nil
      end

      # A full one for all that is garbage; the others need not look at what is old already.
      # @return [void]
      def self.promote = AGES.times { |time| GC.start(full_mark: time.zero?) }

      # @return [Float]
      def self.one_more
        before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
        GC.start(full_mark: false)
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before
      end
      private_class_method :promote, :one_more
    end
  end
end
