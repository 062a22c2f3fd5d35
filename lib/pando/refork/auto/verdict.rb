# frozen_string_literal: true

require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # What is found at one look.
      #
      #   action  :refork, :settle (the app is warm) or :wait
      #   reason  in words
      #   rule    that says so, with its figures
      #   saving  bytes by that rule; nil: it does not ask for them
      #
      # @api private
      Verdict = Struct.new(:action, :reason, :rule, :saving)
    end

    # What was decided, and by which figures.
    #
    #   action, reason, rule  see Auto::Verdict
    #   phase                 in which
    #   age                   requests a worker
    #   saving                bytes that a refork saves, by the rule
    #   cost                  seconds of CPU that it takes, of all workers; nil: not known yet
    #   pss                   bytes; nil: not known yet
    Decision = Struct.new(:action, :reason, :rule, :phase, :age, :saving, :cost, :pss, keyword_init: true) do
      def refork? = action == :refork

      # @return [Boolean] whether it is worth an event
      def news? = action != :wait

      # @return [Hash{Symbol => Object}] for the event
      def facts
        { decision: action, phase: phase, reason: reason, rule: rule, age: age.round, pss: pss&.round,
          saving: saving.round, cost: cost&.round(3) }.compact
      end
    end
  end
end
