# frozen_string_literal: true

require "pando/refork/policy"

module Pando
  module Refork
    class Auto < Policy
      # What a phase finds.
      #
      #   action  :refork; :settle, the warming is over; :rest, it has stopped; :rearm, it looks again; :wait
      #   reason  in words
      #   rule    that says so, with its figures
      #
      # @api private
      Verdict = Struct.new(:action, :reason, :rule)
    end

    # What was decided, and by which figures.
    #
    #   action, reason, rule  see Auto::Verdict
    #   phase                 in which
    #   age                   requests a worker
    #   saving                share of the memory
    #   cost                  requests a worker; nil: not known yet
    #   pss                   bytes; nil: not known yet
    Decision = Struct.new(:action, :reason, :rule, :phase, :age, :saving, :cost, :pss, keyword_init: true) do
      def refork? = action == :refork

      # @return [Boolean] whether it is worth an event
      def news? = action != :wait

      # @return [Hash{Symbol => Object}] for the event
      def facts
        { decision: action, phase: phase, reason: reason, rule: rule, age: age.round, pss: pss&.round,
          saving: saving.round(3), cost: cost&.round }.compact
      end
    end
  end
end
