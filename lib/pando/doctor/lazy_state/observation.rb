# frozen_string_literal: true

require "pando/doctor/lazy_state/allocations"
require "pando/doctor/lazy_state/containers"
require "pando/doctor/lazy_state/definitions"
require "pando/doctor/lazy_state/judgement"
require "pando/doctor/lazy_state/loading"
require "pando/doctor/lazy_state/places"
require "pando/doctor/lazy_state/result"
require "pando/doctor/lazy_state/virtual_machine"

module Pando
  module Doctor
    module LazyState
      # Serves the same request several times in this process and watches what stays of each.
      #
      # @api private
      class Observation
        # Objects whose holder is looked for.
        FOLLOWED = 300_000

        # @param requests [Integer, nil] for {#run}
        # @param root [String] the application's folder
        def initialize(root:, requests: nil)
          raise ArgumentError, "one request has nothing to be compared with" if requests && requests < 2

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

        # The first request comes next, in the fiber that has booted the application (Thread.current[] is its own).
        # @return [nil]
        def start
          @definitions = Definitions.new
          @loading = Loading.new(@places)
          @containers = Containers.new
          @machine = VirtualMachine.new
          @allocations = Allocations.new(@places)
          @began = now
          watch
          @window = -1
          open_window
        end

        # One is done, another one comes.
        # @return [nil]
        def next_request
          close_window
          open_window
        end

        # The last one is done.
        # @return [Result]
        def finish
          close_window
          stop
          served = now
          groups = @allocations.read { |address, group| follow(address, group) }
          @loading.add_libraries(groups)
          judgement = Judgement.new(groups: groups, addresses: @addresses, loading: @loading, places: @places,
                                    defined: @definitions.fresh, growths: @containers.growths)
          Result.new(judgement.findings, figures(judgement, served - @began, now - served))
        end

        private

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        # An object that moves would lose its address, by which it is known.
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
          @machine.open
        end

        def close_window
          @machine.close
          @containers.count
        end

        def follow(address, group)
          @addresses[address] = group if !group.cache? && @addresses.size < FOLLOWED
        end

        def figures(judgement, serving, reading)
          judgement.figures.merge(machine: @machine.figures, seconds: { serving: serving.round(2),
                                                                        reading: reading.round(2) })
        end
      end
    end
  end
end
