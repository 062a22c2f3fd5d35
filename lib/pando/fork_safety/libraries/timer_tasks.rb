# frozen_string_literal: true

require "pando/fork_safety/libraries/constants"
require "pando/fork_safety/weak_set"

module Pando
  module ForkSafety
    module Libraries
      # The Concurrent::TimerTasks that this process has started. No child runs them: concurrent-ruby drops the copy of
      # the next run, and the copy of the task says `running?` all the same. A task does not tell which process has
      # started it, so this module notices its #execute.
      #
      # Lives in molds, workers and services, and in any process that is audited.
      module TimerTasks
        # Notices tasks that begin.
        module Watch
          def execute
            began = !running?
            super.tap { TimerTasks.begun(self) if began }
          end
        end

        @started = WeakSet.new

        class << self
          # @return [#call, nil] gets each task that begins from now on
          attr_writer :listener

          # From now on, notices each task that begins. Those that run by now belong to this process, if it has used
          # concurrent-ruby's timers at all: a child that has not used them has mere copies.
          def watch
            owner = Constants.prepend_once("Concurrent::TimerTask", Watch) or return
            return unless Concurrent.global_timer_set.instance_variable_get(:@ruby_pid) == Process.pid

            ObjectSpace.each_object(owner) { |task| started.add(task) if running?(task) }
            nil
          end

          # @return [Array<Concurrent::TimerTask>] those of this process that run again and again
          def running
            watch
            started.to_a.select(&:running?)
          end

          def begun(task)
            started.add(task)
            @listener&.call(task)
          end

          private

          def running?(task)
            task.running?
          rescue NoMethodError
            false # it is being made
          end

          def started
            return @started if @pid == Process.pid

            @pid = Process.pid
            @started = WeakSet.new
          end
        end
      end
    end
  end
end
