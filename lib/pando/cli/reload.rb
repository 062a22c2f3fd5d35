# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando reload`: boots what is now in the release folder, and waits until every worker runs it.
    #
    # @api private
    class Reload < ControlCommand
      private

      def perform = carry_out("reload")
    end
  end
end
