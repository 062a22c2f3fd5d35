# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando drain`: health checks fail from now on. The command waits until no client sends requests any more. `--undo`
    # reverses it.
    #
    # @api private
    class Drain < ControlCommand
      UNDO = Switch.new(name: :undo, flags: %w[--undo],
                        help: "Reverse `drain` (back into rotation) or `quiet` (job nodes take jobs again).").freeze

      def self.switches
        [*super, UNDO]
      end

      private

      def perform = carry_out("drain", undo: flags[:undo])
    end
  end
end
