# frozen_string_literal: true

require "pando/code_places"
require "pando/doctor/lazy_state/allocations"
require "pando/doctor/lazy_state/analysis"
require "pando/doctor/lazy_state/loading"
require "pando/sys"
require "pando/yjit"

module Pando
  module Doctor
    module LazyState
      # Serves the same request several times in this process, and finds what each leaves behind: objects, loaded code,
      # methods, larger containers. Owned by LazyState or by a ForkedRun's child.
      class Observation
        # Objects whose holder is searched for, at most.
        FOLLOWED = 300_000
        # Some of Ruby's counters; RubyVM.stat has others in each Ruby, such as constant_cache_misses since 3.2.
        GARBAGE = %i[total_allocated_objects heap_allocated_pages].freeze
        COMPILED = %i[code_region_size inline_code_size outlined_code_size].freeze

        def initialize(root)
          @places = CodePlaces.new(root)
          @addresses = {}
        end

        # @param requests [Integer] 2 or more
        # @return [Result]
        def run(requests)
          raise ArgumentError, "a single request cannot be compared with another" if requests < 2

          start
          requests.times do |at|
            next_request unless at.zero?
            yield at + 1
          end
          finish
        ensure
          stop
        end

        # Called before the first request, in the fiber that has booted the application, because each fiber has a
        # Thread.current[] of its own.
        def start
          @definitions = Definitions.new
          @loading = Loading.new(@places)
          @containers = Containers.new
          @machine = []
          counters # the first call makes the counters' names, which must not count for a request
          @allocations = Allocations.new(@places)
          @began = Sys.now
          watch
          open_window
        end

        # Called between two requests.
        def next_request
          close_window
          @loading.next_window
          open_window
        end

        # Called after the last request.
        def finish
          close_window
          stop
          served = Sys.now
          groups = @allocations.read do |address, group|
            @addresses[address] = group if !group.cache? && @addresses.size < FOLLOWED
          end
          @loading.add_libraries(groups)
          analysis = Analysis.new(groups: groups, addresses: @addresses, loading: @loading, places: @places,
                                  defined: @definitions.fresh, growths: @containers.growths)
          seconds = { serving: (served - @began).round(2), reading: (Sys.now - served).round(2) }
          Result.new(analysis.findings, { **analysis.figures, machine: @machine, seconds: seconds })
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
          @allocations.open_window
          @before = counters
        end

        # Each request raises Ruby's own counters by so much.
        def close_window
          @machine << counters.to_h { |name, count| [name, count - @before[name]] }
          @containers.count
        end

        def counters
          compiled = YJIT.enabled? ? RubyVM::YJIT.runtime_stats.slice(*COMPILED) : {}
          RubyVM.stat.merge(GARBAGE.to_h { |name| [name, GC.stat(name)] }, compiled)
        end
      end
    end
  end
end
