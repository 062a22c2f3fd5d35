# frozen_string_literal: true

require "pando/refork/policy"

module Pando
  module Refork
    # `refork after: [500, 750, 1000]`: one request count for each generation.
    # The last one repeats for ever; a final `false` ends the reforking instead.
    class Schedule < Policy
      # @param list [Array<Integer, false>]
      # @raise [ArgumentError] unless they are positive Integers, the last one
      #   possibly false
      def initialize(list)
        super()
        @ends = list.last == false
        @counts = (@ends ? list[0..-2] : list).dup.freeze
        return if @counts.any? && @counts.all? { |count| count.is_a?(Integer) && count.positive? }

        raise ArgumentError, "refork after: wants positive request counts, false only as the last, not #{list.inspect}"
      end

      # (see Policy#threshold)
      def threshold(reforks)
        @counts.fetch(reforks) { @ends ? nil : @counts.last }
      end

      # (see Policy#trains?)
      def trains?(reforks)
        super && !threshold(reforks).nil?
      end
    end
  end
end
