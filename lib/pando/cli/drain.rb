# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando drain`: health checks fail from now on; waits until nobody sends requests any more. `--undo` takes it back.
    #
    # @api private
    class Drain < ControlCommand
      UNDO = Switch.new(name: :undo, flags: %w[--undo],
                        help: "Take back `drain` (into rotation again) or `quiet` (jobs are taken again).").freeze

      def self.switches
        [*super, UNDO]
      end

      private

      def perform = carry_out("drain", undo: flags[:undo])
    end
  end
end
