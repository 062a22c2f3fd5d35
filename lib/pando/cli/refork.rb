# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando refork`: a warm worker becomes the next mold; waits until every worker comes from it.
    #
    # @api private
    class Refork < ControlCommand
      private

      def perform = carry_out("refork")
    end
  end
end
