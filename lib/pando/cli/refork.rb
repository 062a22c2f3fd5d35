# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando refork [POOL]`: makes a warm worker the next mold, and waits until its canary has passed and every worker
    # comes from it. Without a POOL it does so in each pool.
    #
    # @api private
    class Refork < ControlCommand
      FORCE = Switch.new(name: :force, flags: %w[--force], argument: nil,
                         help: "With `refork`: try even if reforking is suspended or backing off.").freeze

      def self.switches
        [*super, FORCE]
      end

      private

      def perform = carry_out("refork", { force: ("yes" if flags[:force]), pool: words.first })
      def operands = %w[POOL]
    end
  end
end
