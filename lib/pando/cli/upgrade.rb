# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando upgrade`: upgrades the monitor to the installed version while all other processes keep running, and waits
    # for the result.
    #
    # @api private
    class Upgrade < ControlCommand
      private

      def perform = carry_out("upgrade")
    end
  end
end
