# frozen_string_literal: true

module Pando
  module Cluster
    class Child
      # Until when a child is to have come how far.
      #
      # Included by Child, in the monitor.
      #
      # @api private
      module Terms
        # Seconds on Sys.now by which the next state must be reached, nil: none.
        attr_accessor :deadline
        # Seconds on Sys.now after which it is searched for, while it has not reported; nil: never.
        attr_accessor :expected_by
        # The step of its self-check that it is at, nil: at none.
        attr_reader :step
        # Seconds on Sys.now by which the next step must be reached, nil: none, or it has passed.
        attr_reader :step_deadline

        # @param name [String] empty: it is through
        def enter_step(name, deadline)
          @step, @step_deadline = ([name, deadline] if starting? && !name.empty?)
        end

        # The step has had its time: what becomes of it is being found out.
        def step_overdue
          @step_deadline = nil
        end

        # It is where it was when its step's time was over.
        def standing_still? = starting? && !step.nil? && step_deadline.nil? && !condemned?

        # The whole server stood still, and this one could not do anything either.
        # @param seconds [Float]
        def postpone(seconds)
          @deadline &&= @deadline + seconds
          @step_deadline &&= @step_deadline + seconds
          @expected_by &&= @expected_by + seconds
        end
      end
    end
  end
end
