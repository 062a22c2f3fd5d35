# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/counted"

module Pando
  module Cluster
    class Control
      # A command that takes its time. It is told of every event of the monitor, and decides from
      # them and from what is there whether it has come to its end.
      #
      # @api private
      class Task
        include Brief
        include Counted

        # @return [String, nil] what was achieved, once it was
        attr_reader :achieved
        # @return [String, nil] why it came to nothing
        attr_reader :failure

        # @param cluster [Monitor]
        def initialize(cluster)
          @cluster = cluster
        end

        # @return [Boolean] whether the monitor after an upgrade can tell how it ended
        def lasting? = false

        def over? = !(@achieved || @failure).nil?

        # Begins. What it causes at once is told to #observe before it returns.
        def start = raise(NoMethodError, "#{self.class} must say how it begins")

        # @param _event [Event]
        def observe(_event); end

        # Called at each turn of the monitor's loop.
        def check; end

        # What it must wait for, and events do not tell.
        # @return [Array(String, Float), nil] in words, and seconds that this takes at most (nil: not known); nil:
        #   nothing
        def obstacle = nil

        private

        # @param worker [Child] of the pool that the task is about
        def title(worker) = "the #{@pool.options.jobs ? "node" : "worker"} in slot #{worker.slot}"

        # @param worker [Child] one that is busy
        def engagement(worker)
          return "is at #{worker.job[:request]}" unless @pool.options.jobs

          "is running #{counted(worker.row.running, "job")}"
        end

        def achieve(text) = @achieved = text
        def give_up(text) = @failure = text
      end
    end
  end
end
