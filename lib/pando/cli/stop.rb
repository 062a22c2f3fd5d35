# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando stop`: waits until the server has ended.
    #
    # @api private
    class Stop < ControlCommand
      HOW = Switch.new(name: :how, flags: %w[--how], argument: "gracefully|quickly|at_once",
                       help: "With `stop`: running requests are finished (the default, as TERM does), have " \
                             "the grace of `timeout` (INT), or are cut off.").freeze

      def self.switches
        [*super, HOW]
      end

      private

      def perform = carry_out("stop", how: flags[:how] || "gracefully")
    end
  end
end
