# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando reload`: boots what is now in the release folder, and waits until every worker runs it.
    #
    # @api private
    class Reload < ControlCommand
      CANCEL = Switch.new(name: :cancel, flags: %w[--cancel], argument: nil,
                          help: "With `reload`: call one off whose configuration is still being read.").freeze

      def self.switches
        [*super, CANCEL]
      end

      private

      def perform = carry_out("reload", flags[:cancel] ? { cancel: "yes" } : {})
    end
  end
end
