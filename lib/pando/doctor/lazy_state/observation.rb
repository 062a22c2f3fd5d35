# frozen_string_literal: true

require "pando/doctor/lazy_state/allocations"
require "pando/doctor/lazy_state/analysis"
require "pando/doctor/lazy_state/containers"
require "pando/doctor/lazy_state/loading"
require "pando/doctor/lazy_state/places"
require "pando/doctor/lazy_state/result"
require "pando/sys"
require "pando/yjit"

module Pando
  module Doctor
    module LazyState
      # Serves the same request several times in this process, and finds what each leaves behind: objects, loaded code,
      # methods, larger containers. Owned by LazyState or by a ForkedRun's child.
      #
      # @api private
      class Observation
        # Objects whose holder is searched for, at most.
        FOLLOWED = 300_000

        # @param requests [Integer, nil] for {#run}
        # @param root [String] the application's folder
        def initialize(root:, requests: nil)
          raise ArgumentError, "a single request cannot be compared with another" if requests && requests < 2

          @requests = requests
          @places = Places.new(root)
          @addresses = {}
        end

        # @return [Result]
        def run
          start
          @requests.times do |at|
            next_request unless at.zero?
            yield at + 1
          end
          finish
        ensure
          stop
        end

        # Called before the first request, in the fiber that has booted the application, because each fiber has a
        # Thread.current[] of its own.
        # @return [nil]
        def start
          @definitions = Definitions.new
          @loading = Loading.new(@places)
          @containers = Containers.new
          @counters = Counters.new
          @allocations = Allocations.new(@places)
          @began = Sys.now
          watch
          @window = -1
          open_window
        end

        # Called between two requests.
        # @return [nil]
        def next_request
          close_window
          open_window
        end

        # Called after the last request.
        # @return [Result]
        def finish
          close_window
          stop
          served = Sys.now
          groups = @allocations.read { |address, group| follow(address, group) }
          @loading.add_libraries(groups)
          analysis = Analysis.new(groups: groups, addresses: @addresses, loading: @loading, places: @places,
                                  defined: @definitions.fresh, growths: @containers.growths)
          seconds = { serving: (served - @began).round(2), reading: (Sys.now - served).round(2) }
          Result.new(analysis.findings, { **analysis.figures, machine: @counters.figures, seconds: seconds })
        end

        private

        # Objects are known by their addresses, so none may move.
        def watch
          @compacts = GC.respond_to?(:auto_compact) && GC.auto_compact
          GC.auto_compact = false if @compacts
          @watching = true
          @allocations.start
          @containers.count
          @loading.start
        end

        def stop
          return unless @watching

          @watching = false
          @allocations.stop
          @loading.stop
          GC.auto_compact = true if @compacts
        end

        def open_window
          @loading.open_window(@window += 1)
          @allocations.open_window
          @counters.open_window
        end

        def close_window
          @counters.close_window
          @containers.count
        end

        def follow(address, group)
          @addresses[address] = group if !group.cache? && @addresses.size < FOLLOWED
        end
      end

      # By how much each request raises Ruby's own counters.
      #
      # @api private
      class Counters
        GARBAGE = %i[total_allocated_objects heap_allocated_pages].freeze
        private_constant :GARBAGE

        # @return [Array<Hash{Symbol => Integer}>] by request; which counters there are depends on the Ruby:
        #   constant_cache_misses (filled inline caches of constants) since 3.2, for example
        attr_reader :figures

        def initialize
          @figures = []
          counters # the first call makes the counters' names, which must not count for a request
        end

        # @return [nil]
        def open_window
          @before = counters
          nil
        end

        # @return [nil]
        def close_window
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
