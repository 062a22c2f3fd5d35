# frozen_string_literal: true

require "pando/fork_safety/libraries/constants"

module Pando
  module ForkSafety
    module Libraries
      # The collectors of honeybadger's Insights. One thread takes each from a queue, runs it and puts it back. Nothing
      # but this thread brings them back to life, so that a child would lack the one that ran during the fork. This
      # module notices which one that is.
      #
      # Lives in molds and workers.
      module HoneybadgerCollectors
        # Notices the collector that runs.
        module Watch
          attr_reader :pando_running

          private

          def work(collector)
            @pando_running = collector
            super
          end
        end

        class << self
          # From now on, notices the collector that runs.
          def watch = Constants.prepend_once("Honeybadger::MetricsWorker", Watch)

          # In a child: starts the thread again. The parent reports the former counts.
          def start
            agent = Honeybadger::Agent.instance
            agent.instance_variable_get(:@registry)&.flush
            worker = agent.instance_variable_get(:@metrics_worker)
            return unless worker&.instance_variable_get(:@thread)

            put_back(worker)
            worker.start
          end

          private

          # In the queue, it may be already.
          def put_back(worker)
            queue = worker.instance_variable_get(:@queue)
            waiting = Array.new(queue.size) { queue.pop(true) }
            waiting |= [worker.pando_running] if worker.is_a?(Watch) && worker.pando_running
            waiting.each { |collector| queue.push(collector) }
          end
        end
      end
    end
  end
end
