# frozen_string_literal: true

require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      module Tasks
        # Several at once: it is over when all are.
        class Together < Task
          # @param tasks [Array<Task>]
          def initialize(cluster, tasks)
            super(cluster)
            @tasks = tasks
          end

          def start = @tasks.each(&:start)
          def check = @tasks.each { |task| task.check unless task.over? }
          def over? = @tasks.all?(&:over?)
          def observe(event) = @tasks.each { |task| task.observe(event) unless task.over? }
          def obstacle = @tasks.reject(&:over?).filter_map(&:obstacle).first
          def achieved = said(&:achieved)

          # If one has come to nothing: of the others too, that they have not.
          def failure = (text = said(&:failure)) && [text, *achieved].join("; ")

          private

          def said(&word) = @tasks.filter_map(&word).join("; ").then { |text| text unless text.empty? }
        end
      end
    end
  end
end
