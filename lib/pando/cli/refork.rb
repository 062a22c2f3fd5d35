# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando refork`: a warm worker becomes the next mold; waits until it has proved itself and every worker comes
    # from it.
    #
    # @api private
    class Refork < ControlCommand
      FORCE = Switch.new(name: :force, flags: %w[--force], argument: nil,
                         help: "With `refork`: even if reforking is suspended, or the next try is to wait.").freeze

      def self.switches
        [*super, FORCE]
      end

      private

      def perform = carry_out("refork", flags[:force] ? { force: "yes" } : {})
    end
  end
end
