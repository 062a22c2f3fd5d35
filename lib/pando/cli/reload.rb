# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando reload`: boots the code that is on disk now, and waits until every worker runs it and Pando has stopped
    # watching it. If no requests come by which it could be judged, or with --now, it does not wait for that.
    #
    # @api private
    class Reload < ControlCommand
      CANCEL = Switch.new(name: :cancel, flags: %w[--cancel], argument: nil,
                          help: "With `reload`: cancel a reload whose configuration is still being read.").freeze

      NOW = Switch.new(name: :now, flags: %w[--now], argument: nil,
                       help: "With `reload`: replace all workers as soon as the first new one has passed its " \
                             "self-test, without a canary trial.").freeze

      def self.switches
        [*super, CANCEL, NOW]
      end

      private

      def perform = carry_out("reload", { cancel: ("yes" if flags[:cancel]), now: ("yes" if flags[:now]) })
    end
  end
end
