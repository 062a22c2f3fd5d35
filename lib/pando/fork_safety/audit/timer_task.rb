# frozen_string_literal: true

require "pando/fork_safety/audit/live_thread"
require "pando/fork_safety/libraries/constants"

module Pando
  module ForkSafety
    module Audit
      # A Concurrent::TimerTask that runs again and again in this process. No child runs it: concurrent-ruby drops the
      # copy of its next run, and the copy of the task says `running?` all the same. So it is judged as a thread with
      # the task's block. The threads of the pool that it runs in do come back.
      class TimerTask < LiveThread
        FILE = "/concurrent/timer_task.rb"
        EXECUTING = /#{Regexp.escape(FILE)}:\d+:in .*\bexecute_task\b/
        KIND = "timer task"
        ADVICE = "Start it again in after_worker_fork, as a new Concurrent::TimerTask."
        private_constant :FILE, :EXECUTING, :KIND, :ADVICE

        class << self
          # @return [Array<TimerTask>] those that run in this process
          def all
            timer_task = Libraries::Constants.find("Concurrent::TimerTask") or return []

            (scheduled | executing(timer_task)).select(&:running?).map { |task| new(task) }
          end

          def site(task) = block(task)&.source_location&.join(":")

          private

          # The next run of each is an entry of concurrent-ruby's global timer set. In a child, the set is a copy until
          # it is used. The first element of its heap is always empty.
          def scheduled
            set = Concurrent.global_timer_set
            return [] unless set.instance_variable_get(:@ruby_pid) == Process.pid

            heap = set.instance_variable_get(:@queue).instance_variable_get(:@queue)
            runs = Array(heap).compact.filter_map { |entry| entry.instance_variable_get(:@task) }
            runs.select { |run| run.source_location&.first&.end_with?(FILE) }.map { |run| run.binding.receiver }
          end

          # While it does its work, a task is no entry of the timer set. The backtrace of the thread shows its file.
          def executing(timer_task)
            traces = Thread.list.filter_map(&:backtrace).select { |lines| lines.any?(EXECUTING) }
            return [] if traces.empty?

            files = traces.flatten.map { |line| line[/\A(.+?):\d+:in /, 1] }.uniq
            ObjectSpace.each_object(timer_task).select { |task| files.include?(block(task)&.source_location&.first) }
          end

          # It lies in an executor that rescues errors.
          def block(task) = task.instance_variable_get(:@task).instance_variable_get(:@task)
        end

        def name = nil
        def alive? = thread.running?
        def excuse = revival
        def origin = @origin ||= ThreadOrigin.new(location, kind: KIND)
        def advice = origin.advice(library_advice || ADVICE)
        def label = "a #{KIND}"
        def to_h = { type: :timer_task, location: location, excuse: excuse }.compact
      end
    end
  end
end
