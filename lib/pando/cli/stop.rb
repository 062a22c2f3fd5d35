# frozen_string_literal: true

require "pando/cli/control_command"

module Pando
  module CLI
    # `pando stop`: stops the server and waits until it has ended.
    #
    # @api private
    class Stop < ControlCommand
      WAYS = %w[gracefully quickly at_once].freeze
      HOW = Switch.new(name: :how, flags: %w[--how], argument: WAYS.join("|"),
                       help: "With `stop`: finish running requests (the default, like TERM), give them the " \
                             "grace of `timeout` (like INT), or cut them off.").freeze

      def self.switches
        [*super, HOW]
      end

      private

      def perform = carry_out("stop", how: how)

      def how
        way = flags[:how] || WAYS.first
        return way if WAYS.include?(way)

        raise UsageError, "--how: must be #{WAYS[..-2].join(", ")} or #{WAYS.last}, but is #{way.inspect}."
      end
    end
  end
end
