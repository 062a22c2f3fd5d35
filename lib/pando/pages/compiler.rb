# frozen_string_literal: true

require "pando/yjit"

module Pando
  module Pages
    # What Ruby's compiler says of itself: how much it has compiled, and how much memory it has for that. What is
    # written about the code (which block begins where, who jumps to it) is in malloc's memory, where nobody sees whose
    # it is.
    #
    # @api private
    class Compiler
      # @return [Compiler, nil] nil: none runs, or it does not say
      def self.of_this_ruby
        new(RubyVM::YJIT) if YJIT.enabled? && RubyVM::YJIT.respond_to?(:runtime_stats)
      end

      def initialize(yjit)
        @yjit = yjit
        @blocks = blocks
      end

      def name = "YJIT"

      # @return [Integer] since the last time that it was asked
      def blocks_since
        before = @blocks
        @blocks = blocks
        @blocks - before
      end

      # @return [Integer, nil]
      def code_bytes = stats[:code_region_size]
      # @return [Integer, nil]
      def metadata_bytes = stats[:yjit_alloc_size]

      private

      def blocks = stats[:compiled_block_count].to_i
      def stats = @yjit.runtime_stats || {}
    end
  end
end
