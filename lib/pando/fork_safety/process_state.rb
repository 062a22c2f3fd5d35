# frozen_string_literal: true

require "pando/fork_safety/process_state/change"
require "pando/fork_safety/process_state/reading"

module Pando
  module ForkSafety
    # What the kernel keeps of a process beside its memory, and each fork hands down: its directory, umask, user and
    # limits, how it takes signals, its first three descriptors; and its environment. Two of them are compared, the
    # younger one in the process of the older one or in a descendant of it.
    #
    # A value. Of the environment it has no contents, which may be secrets, but a digest of each.
    #
    # @api private
    class ProcessState
      # @return [ProcessState] of this process
      def self.take = new(Reading.all)

      # @return [Hash{String => Value}] by the name of what it is
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

      # @param former [ProcessState] @param keys [Array<String>] of what is to be as it was there
      # @return [ProcessState]
      def with(former, keys)
        kept = former.values.slice(*keys)
        ProcessState.new(values.except(*keys).merge(kept))
      end
    end
  end
end
