# frozen_string_literal: true

require "pando/cli/drain"

module Pando
  module CLI
    # `pando quiet`: job nodes take no new jobs from now on, as after TSTP. `--undo` reverses it.
    #
    # @api private
    class Quiet < ControlCommand
      def self.switches = [*super, Drain::UNDO]

      private

      def perform = carry_out("quiet", undo: flags[:undo])
    end
  end
end
