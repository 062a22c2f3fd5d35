# frozen_string_literal: true

require "pando/fork_safety/process_state/change"
require "pando/fork_safety/process_state/reading"

module Pando
  module ForkSafety
    # What the kernel keeps of a process besides its memory, and each fork hands down: its directory, umask, user and
    # limits, its signal handling, its first three descriptors; and its environment. Pando compares two states. The
    # younger one comes from the process of the older one, or from a descendant of it.
    #
    # A value. It holds no contents of environment variables, which may be secrets, but a digest of each.
    #
    # @api private
    class ProcessState
      # @return [ProcessState] of this process
      def self.take = new(Reading.all)

      # @return [Hash{String => Value}] by name
      attr_reader :values

      # @param values [Hash{String => Value}]
      def initialize(values)
        @values = values.freeze
        freeze
      end

      def ==(other) = other.is_a?(ProcessState) && values == other.values

      # @param former [ProcessState]
      # @return [Array<Change>]
      def changes_since(former)
        (former.values.keys | values.keys).filter_map do |key|
          from = former.values[key]
          to = values[key]
          Change.new(key, from, to) unless from == to
        end
      end

      # @param former [ProcessState] @param keys [Array<String>] the values to take from the former state
      # @return [ProcessState]
      def with(former, keys)
        kept = former.values.slice(*keys)
        ProcessState.new(values.except(*keys).merge(kept))
      end
    end
  end
end
