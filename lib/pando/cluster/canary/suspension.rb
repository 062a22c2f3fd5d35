# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/events"

module Pando
  module Cluster
    module Canary
      # Reforks that fail again and again are given up, until somebody says otherwise: the app has something that
      # does not bear it, and each try costs.
      #
      # Owned by the monitor.
      #
      # @api private
      class Suspension
        extend Serializable

        serialize failures: :integer, suspended: :flag

        # @return [Integer] reforks that came to nothing, in a row
        attr_reader :failures

        # @param limit [#call] how many may; nil: any number
        def initialize(limit)
          @limit = limit
          @failures = 0
          @suspended = false
        end

        def suspended? = @suspended

        # @param reason [String] why the last one failed
        def count(reason)
          @failures += 1
          return if @suspended || @limit.call.nil? || @failures < @limit.call

          @suspended = true
          Events.emit("refork.suspended", count: @failures, reason: reason)
        end

        # A generation has proved itself, or somebody wants another try.
        # @param reason [String]
        def lift(reason)
          @failures = 0
          return unless @suspended

          @suspended = false
          Events.emit("refork.resumed", reason: reason)
        end
      end
    end
  end
end
