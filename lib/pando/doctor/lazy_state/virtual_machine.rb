# frozen_string_literal: true

require "pando/yjit"

module Pando
  module Doctor
    module LazyState
      # What Ruby's own counters say of each request.
      #
      # @api private
      class VirtualMachine
        GARBAGE = %i[total_allocated_objects heap_allocated_pages].freeze
        private_constant :GARBAGE

        # @return [Array<Hash{Symbol => Integer}>] of each request, what it added; which counters there are is
        #   the Ruby's affair: constant_cache_misses (inline caches of constants filled) since 3.2, say
        attr_reader :figures

        def initialize
          @figures = []
          counters # Ruby makes the counters' names when they are first asked for, and no request did that
        end

        # A request comes.
        # @return [nil]
        def open
          @before = counters
          nil
        end

        # It is done.
        # @return [nil]
        def close
          after = counters
          @figures << after.to_h { |name, count| [name, count - @before[name]] }
          nil
        end

        private

        def counters
          RubyVM.stat.merge(GARBAGE.to_h { |name| [name, GC.stat(name)] }, yjit)
        end

        def yjit
          return {} unless YJIT.enabled?

          RubyVM::YJIT.runtime_stats.slice(:code_region_size, :inline_code_size, :outlined_code_size)
        end
      end
    end
  end
end
