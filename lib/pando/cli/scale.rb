# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando scale [POOL] N`: waits until N workers are ready and surplus workers are gone. Without a POOL it scales the
    # first pool.
    #
    # @api private
    class Scale < ControlCommand
      private

      # A negative number would look like a flag.
      def flags
        negative = @arguments.grep(/\A-\d+\z/).first
        refuse(negative) if negative
        super
      end

      def perform = carry_out("scale", { workers: workers, pool: pool })

      def operands = %w[POOL N]

      def pool = (words.first if words.size > 1)

      def workers
        text = words.last
        raise UsageError, "give the number of workers: pando scale N" unless text

        refuse(text) unless text.match?(/\A\d+\z/)

        text.to_i
      end

      def refuse(text)
        raise UsageError, "pando scale N: must be a whole number, 1 or more, but is #{text.inspect}"
      end
    end
  end
end
