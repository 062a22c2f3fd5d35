# frozen_string_literal: true

module Pando
  # Whether this process may still be forked. It says no for good (the application has called
  # {Pando.no_longer_fork_safe!}) or for as long as an obstacle stands, such as an open selector.
  module ForkSafety
    @reason = nil
    @obstacles = {}.freeze
    @listener = nil

    class << self
      # @return [String, nil] why it is not safe now
      def reason = @reason || @obstacles.each_value.first

      # @return [Boolean]
      def safe? = reason.nil?

      # Installs the one block that is told when this process becomes unsafe or safe again, in place of the one
      # before; a worker sets its scoreboard flag there. Called at once if the process is unsafe already, because of
      # what happened in it or in an ancestor.
      #
      # @api private
      # @yieldparam reason [String, nil] nil: it is safe again
      # @return [nil]
      def on_unsafe(&block)
        @listener = block
        block&.call(reason) if reason
        nil
      end

      # Marks this process unsafe for good.
      #
      # @api private
      # @param reason [String] the first one counts
      # @return [nil]
      def give_up(reason)
        change { @reason ||= reason }
        nil
      end

      # Marks this process unsafe until the obstacle is cleared.
      #
      # @api private
      # @param key [Symbol] of the obstacle
      # @param reason [String]
      # @return [nil]
      def obstruct(key, reason)
        change { @obstacles = { **@obstacles, key => reason }.freeze }
      end

      # @api private
      # @param key [Symbol] as given to {obstruct}
      # @return [nil]
      def clear(key)
        change { @obstacles = @obstacles.reject { |known, _| known == key }.freeze } if @obstacles.key?(key)
      end

      private

      # Tells the listener only of the steps between safe and unsafe, not of a second reason.
      def change
        before = safe?
        yield
        @listener&.call(reason) unless safe? == before
        nil
      end
    end
  end
end
