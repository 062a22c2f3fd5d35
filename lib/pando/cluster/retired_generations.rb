# frozen_string_literal: true

module Pando
  module Cluster
    # The generation whose predecessors are to be replaced, and the discarded and refused ones. Owned by Generations.
    class RetiredGenerations
      extend Serializable

      serialize number: :integer, before: :integer, discarded: :integers

      # Discarded generations that are remembered: more than can have a process left.
      MEMORY = 100

      def initialize
        @number = @before = 0
        @discarded = []
      end

      # @return [Boolean] whether it serves no more, or was discarded
      def passed?(generation) = generation < @number || @discarded.include?(generation)

      def outdated?(worker) = passed?(worker.generation)

      def discarded?(child) = @discarded.include?(child.generation)

      # New workers come from this generation from now on.
      def raise_to(number)
        return if @number == number

        @before = @number
        @number = number
      end

      # The generations before it are good again.
      def discard(number)
        @discarded = [*@discarded.last(MEMORY - 1), number]
        @number = @before if @number == number
      end
    end
  end
end
