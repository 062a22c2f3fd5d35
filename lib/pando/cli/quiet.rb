# frozen_string_literal: true

require "pando/cli/drain"

module Pando
  module CLI
    # `pando quiet`: job nodes take nothing new from now on, as TSTP says it. `--undo` takes it back.
    #
    # @api private
    class Quiet < ControlCommand
      def self.switches = [*super, Drain::UNDO]

      private

      def perform = carry_out("quiet", undo: flags[:undo])
    end
  end
end
