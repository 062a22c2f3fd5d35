# frozen_string_literal: true

module Pando
  # Whether this process may still be forked. It becomes unsafe for good when the app calls
  # {Pando.no_longer_fork_safe!}, or for as long as an obstacle exists, such as an open selector.
  module ForkSafety
    @reason = nil
    @obstacles = {}.freeze
    @listener = nil

    class << self
      # @return [String, nil] why the process is not safe now
      def reason = @reason || @obstacles.each_value.first

      # @return [Boolean]
      def safe? = reason.nil?

      # Sets the block that is called when this process becomes unsafe or safe again, and replaces the former one. A
      # worker sets its scoreboard flag there. If the process is unsafe already, because of what happened in it or in
      # an ancestor, the block is called at once. It is not called in a child that the app forks: its obstacles are its
      # own.
      #
      # @api private
      # @yieldparam reason [String, nil] nil: it is safe again
      def on_unsafe(&block)
        @listener = block
        @listens = Process.pid
        block&.call(reason) if reason
        nil
      end

      # Marks this process unsafe for good. The first reason counts.
      #
      # @api private
      def give_up(reason)
        change { @reason ||= reason }
        nil
      end

      # Marks this process unsafe until {clear} is called with the same key.
      #
      # @api private
      # @param key [Symbol] names the obstacle
      def obstruct(key, reason)
        change { @obstacles = { **@obstacles, key => reason }.freeze }
      end

      # @api private
      def clear(key)
        change { @obstacles = @obstacles.except(key).freeze } if @obstacles.key?(key)
      end

      private

      # Calls the listener only when safe becomes unsafe or the reverse, not for a second reason.
      def change
        before = safe?
        yield
        @listener&.call(reason) unless safe? == before || @listens != Process.pid
        nil
      end
    end
  end
end
