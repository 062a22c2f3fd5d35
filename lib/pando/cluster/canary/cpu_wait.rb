# frozen_string_literal: true

require "pando/sys/scheduler"

module Pando
  module Cluster
    module Canary
      # How long the workers on trial have waited for a CPU, for each request that they served: on a busy machine it is
      # a part of the time that a request takes, comes in bursts, and says nothing about a generation.
      #
      # Owned by Trial.
      #
      # @api private
      class CPUWait
        # @param source [#run_delay]
        def initialize(source = Sys::Scheduler)
          @source = source
          @first = {}.compare_by_identity
        end

        # Looked at since the first time that a worker was among them.
        # @param workers [Array<Child>]
        # @return [Float] microseconds
        def per_request(workers)
          waited = workers.sum { |worker| since_first(worker) }
          waited / [workers.sum(&:requests), 1].max.to_f
        end

        private

        def since_first(worker)
          delay = @source.run_delay(worker.pid) or return 0
          delay - (@first[worker] ||= delay)
        end
      end
    end
  end
end
