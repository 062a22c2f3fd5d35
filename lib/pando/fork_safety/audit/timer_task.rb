# frozen_string_literal: true

require "pando/fork_safety/audit/live_thread"
require "pando/fork_safety/libraries/timer_tasks"

module Pando
  module ForkSafety
    module Audit
      # A Concurrent::TimerTask that runs again and again in this process. No child runs it, see
      # {Libraries::TimerTasks}. So it is judged as a thread with the task's block. The threads of the pool that it runs
      # in do come back. A value.
      class TimerTask
        include BackgroundWork

        KIND = "timer task"
        ADVICE = "Start it again in after_worker_fork, as a new Concurrent::TimerTask."
        private_constant :KIND, :ADVICE

        # @return [Array<TimerTask>] those that run in this process
        def self.all = Libraries::TimerTasks.running.map { |task| new(task) }

        # @return [String, nil] "file:line" of its block; nil for C code
        attr_reader :location
        # @return [Concurrent::TimerTask]
        attr_reader :task

        def initialize(task)
          @task = task
          # The block lies in an executor that rescues errors.
          block = task.instance_variable_get(:@task).instance_variable_get(:@task)
          @location = block&.source_location&.join(":")
        end

        def name = nil
        def alive? = task.running?
        def excuse = revival
        def label = "a #{KIND}"
        def to_h = { type: :timer_task, location: location, excuse: excuse }.compact

        private

        def kind = KIND
        def library_advice = super || ADVICE
      end
    end
  end
end
