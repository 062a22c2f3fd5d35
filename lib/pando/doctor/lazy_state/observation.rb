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

        def initialize(requests:, root:)
          raise ArgumentError, "one request has nothing to be compared with" if requests < 2

          @requests = requests
          @places = Places.new(root)
          @addresses = {}
        end

        # @return [Result]
        def run(&request)
          began = now
          prepare
          watched { @requests.times { |window| serve(window, &request) } }
          served = now
          groups = @allocations.read { |address, group| follow(address, group) }
          judgement = Judgement.new(groups: groups, addresses: @addresses, loading: @loading, places: @places,
                                    defined: @definitions.fresh, growths: @containers.growths)
          Result.new(judgement.findings, figures(judgement, served - began, now - served))
        end

        private

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        def prepare
          @definitions = Definitions.new
          @loading = Loading.new(@places)
          @containers = Containers.new
          @machine = VirtualMachine.new
          @allocations = Allocations.new(@places)
        end

        # An object that moves would lose its address, by which it is known.
        def watched
          compacts = GC.respond_to?(:auto_compact) && GC.auto_compact
          GC.auto_compact = false if compacts
          @allocations.start
          @containers.count
          @loading.start
          yield
          @allocations.stop
        ensure
          @loading.stop
          GC.auto_compact = true if compacts
        end

        # In the fiber that has booted the application, so that what it left in Thread.current[] is there.
        def serve(window)
          @loading.open_window(window)
          @allocations.open_window
          @machine.request do
            yield window + 1
            nil # its answer stays nowhere
          end
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
