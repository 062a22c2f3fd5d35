# frozen_string_literal: true

require "pando/fork_safety/self_check/steps"

module Pando
  module ForkSafety
    # Before a forked child serves, it uses once each part of the process that has a lock. If
    # another thread held such a lock at the fork, nothing in the child will ever release it,
    # and the child hangs here.
    #
    #   ForkSafety::SelfCheck.run { |step| puts step }
    #
    # A process cannot recover from such a lock. So the caller tells another process which
    # step comes next, and that process kills it if a step takes too long. A step that only
    # raises (no descriptor left, a broken resolver) did not hang, so it passes.
    module SelfCheck
      # @return [Array<String>] the names of the steps, in their order
      def self.steps = Steps::ALL.keys

      # @param collect [Boolean] whether to run the GC too, which writes to a large part of the heap
      # @yieldparam step [String] the one that comes next
      # @return [nil]
      def self.run(collect: true)
        Steps::ALL.each do |name, step|
          next if name == "gc" && !collect

          yield name if block_given?
          step.call
        rescue StandardError, LoadError
          nil
        end
        nil
      end
    end
  end
end
