# frozen_string_literal: true

require "pando/swarm/kind"
require "pando/swarm/node"
require "pando/swarm/runners"

module Pando
  # Job nodes: workers of the cluster in which a *runner*, the adapter to a job library, does jobs on threads of its
  # own. docs/swarm.md is its description.
  module Swarm
    @advances = 0

    class << self
      # @api private
      # @return [Integer] how often {advance} has been called in this process
      attr_reader :advances

      # To be called now and then by a job that takes longer than its node's `timeout`: it has come a step further.
      # Without a server it does nothing of use, and no harm.
      #
      # @return [void]
      def advance
        @advances += 1
      end
    end
  end
end
