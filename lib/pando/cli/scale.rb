# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando scale N`: waits until N workers are ready, and those that were too many are gone.
    #
    # @api private
    class Scale < ControlCommand
      private

      def perform = carry_out("scale", workers: workers)

      def argument? = true

      def workers
        text = flags.last(:rackup)&.text
        raise UsageError, "how many workers? pando scale N" unless text
        raise UsageError, "pando scale N: must be a whole number, but is #{text.inspect}" unless text.match?(/\A\d+\z/)

        text.to_i
      end
    end
  end
end
