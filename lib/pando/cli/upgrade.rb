# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando upgrade`: another Pando in place of the monitor's, while everybody else serves on; waits for the outcome.
    #
    # @api private
    class Upgrade < ControlCommand
      private

      def perform = carry_out("upgrade")
    end
  end
end
