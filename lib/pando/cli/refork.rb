# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando refork [POOL]`: a warm worker becomes the next mold; waits until it has proved itself and every worker
    # comes from it. Where there are several pools, and none is named, in each of them.
    #
    # @api private
    class Refork < ControlCommand
      FORCE = Switch.new(name: :force, flags: %w[--force], argument: nil,
                         help: "With `refork`: even if reforking is suspended, or the next try is to wait.").freeze

      def self.switches
        [*super, FORCE]
      end

      private

      def perform = carry_out("refork", { force: ("yes" if flags[:force]), pool: words.first })
      def operands = %w[POOL]
    end
  end
end
