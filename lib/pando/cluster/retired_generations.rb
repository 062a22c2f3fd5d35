# frozen_string_literal: true

require "pando/cluster/serializable"

module Pando
  module Cluster
    # The generation below which workers are to be replaced, and the ones that came to nothing. Owned by
    # Generations.
    #
    # @api private
    class RetiredGenerations
      extend Serializable

      serialize number: :integer, before: :integer, discarded: :integers

      # Discarded generations that are remembered: more than can have a process left.
      MEMORY = 100

      def initialize
        @number = @before = 0
        @discarded = []
      end

      # @param generation [Integer] its number
      # @return [Boolean] whether it serves no more, or came to nothing
      def passed?(generation) = generation < @number || @discarded.include?(generation)

      # @return [Boolean] whether a rollout would replace it
      def above?(worker) = passed?(worker.generation)

      # @return [Boolean] whether it was forked for a generation that came to nothing
      def discarded?(child) = @discarded.include?(child.generation)

      # New workers are to come from this generation from now on.
      def raise_to(number)
        return if @number == number

        @before = @number
        @number = number
      end

      # It came to nothing: those before it are good again.
      def discard(number)
        @discarded = [*@discarded.last(MEMORY - 1), number]
        @number = @before if @number == number
      end
    end
  end
end
