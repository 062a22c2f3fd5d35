# frozen_string_literal: true

require_relative "generations_case"

module ClusterSupport
  # For tests of the tasks of control commands, in a simulated cluster.
  module TaskCase
    include GenerationsCase

    def teardown
      Pando::Events.unsubscribe(@subscription_of_task) if @subscription_of_task
      super
    end

    # Begins it. It hears of the cluster's events until it is over.
    def begin_task(task)
      @subscription_of_task = Pando::Events.subscribe { |event| task.observe(event) unless task.over? }
      task.tap(&:start)
    end
  end
end
