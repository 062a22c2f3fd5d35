# frozen_string_literal: true

module Pando
  # Whether this process may still be forked.
  module ForkSafety
    @reason = nil
    @listener = nil

    class << self
      # @return [String, nil] why it is no longer safe
      attr_reader :reason

      # @return [Boolean]
      def safe?
        @reason.nil?
      end

      # Installs the one block that is told when this process gives up, in place
      # of the one before; a worker sets its scoreboard flag there. Called at once
      # if that has already happened, in this process or in an ancestor.
      #
      # @api private
      # @yieldparam reason [String]
      # @return [nil]
      def on_unsafe(&block)
        @listener = block
        block&.call(@reason) if @reason
        nil
      end

      # @api private
      # @param reason [String] the first one counts
      # @return [nil]
      def give_up(reason)
        return if @reason

        @reason = reason
        @listener&.call(reason)
        nil
      end
    end
  end
end
