# frozen_string_literal: true

require "pando/fork_safety/self_check/steps"

module Pando
  module ForkSafety
    # What a forked child does before anybody relies on it: it uses, once, each part of
    # the process that has a lock. If the fork caught a thread with one of them in its
    # hands, nobody will ever open it in the child, and this is where that shows.
    #
    #   ForkSafety::SelfCheck.run { |step| puts step }
    #
    # There is no way to come back from such a lock, so whoever runs this tells somebody
    # outside which step comes next, and is killed by them when it takes too long. A step
    # that only fails (no descriptor left, a broken resolver) has come back: it is passed.
    module SelfCheck
      # @return [Array<String>] the names of the steps, in their order
      def self.steps = Steps::ALL.keys

      # @param collect [Boolean] whether garbage is collected too, which writes to a good part of the heap
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
