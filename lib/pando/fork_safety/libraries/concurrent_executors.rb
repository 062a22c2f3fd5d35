# frozen_string_literal: true

require "pando/fork_safety/audit/sites"
require "pando/fork_safety/libraries/constants"

module Pando
  module ForkSafety
    module Libraries
      # The tasks that concurrent-ruby's executors and timers hold in this process: those of Active Job's async
      # adapter, of sucker_punch, of sentry-ruby and of any other user. A task that a fork copied belongs to the parent
      # and does not count: concurrent-ruby drops the copy when the executor is used again.
      #
      # concurrent-ruby keeps no list of its executors, so this module walks the heap to find them, and reuses the list
      # for a while.
      module ConcurrentExecutors
        # Seconds for which to reuse a list of executors.
        LIST = 0.1
        # These keep their jobs in a database, and run their own loops in executors. Solid Queue's executors have no
        # name, but belong to its pools.
        DURABLE = /\AGoodJob/
        DURABLE_POOLS = "SolidQueue::Pool"
        # Files of scheduled tasks that no code of the app has asked for: a timer task runs again and again, and job
        # libraries poll their database.
        PERIODIC = %r{/concurrent/timer_task\.rb\z|/(?:elastic-apm|good_job|solid_queue)-[^/]+/}
        RUNNING = %r{/concurrent/executor/.*run_task}
        ACTIVE_JOB = "ActiveJob::QueueAdapters::AsyncAdapter::JobWrapper"
        private_constant :LIST, :DURABLE, :DURABLE_POOLS, :PERIODIC, :RUNNING, :ACTIVE_JOB

        @listed_at = -LIST

        class << self
          # @return [Integer] tasks that are running, waiting or due by then
          def count(by)
            refresh
            @pools.sum { |pool| size(pool) } + scheduled.count { |task| task.schedule_time.to_f <= by }
          end

          # @return [Array<String>] the name of each task that is running, waiting or scheduled for later
          def names
            refresh(anew: true)
            waiting = @pools.select { |pool| own?(pool) }.flat_map { |pool| queue(pool).map { |entry| name(*entry) } }
            running_names + waiting + scheduled.map { |task| "#{name(*scheduled_call(task))} (scheduled)" }
          end

          private

          def refresh(anew: false)
            now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
            return if !anew && @pid == Process.pid && now - @listed_at < LIST

            timer = Constants.find("Concurrent::TimerSet")
            @timers = timer ? ObjectSpace.each_object(timer).to_a : []
            @pools = ObjectSpace.each_object(Concurrent::RubyThreadPoolExecutor).reject { |pool| spared?(pool) }
            @pools -= durable
            @listed_at = now
            @pid = Process.pid
          end

          # A timer set waits for its next task in an executor of its own.
          def spared?(pool)
            @timers.any? { |timer| timer.instance_variable_get(:@timer_executor).equal?(pool) } ||
              [pool.name, pool.class.name].any? { |name| DURABLE.match?(name.to_s) }
          end

          def durable
            pools = Constants.find(DURABLE_POOLS)
            pools ? ObjectSpace.each_object(pools).map { |pool| pool.instance_variable_get(:@executor) } : []
          end

          # concurrent-ruby notes the process in which an executor was last used.
          def own?(service) = service.instance_variable_get(:@ruby_pid) == Process.pid

          # Does not use the counts of scheduled and completed tasks: a task that raises never counts as completed.
          def size(pool) = own?(pool) ? pool.queue_length + running(pool) : 0

          def running(pool)
            return pool.active_count if pool.respond_to?(:active_count)

            pool.length - pool.instance_variable_get(:@ready).size
          end

          def queue(pool) = pool.instance_variable_get(:@queue).to_a.dup

          def scheduled
            @timers.select { |timer| own?(timer) && !DURABLE.match?(timer.class.name.to_s) }
                   .flat_map { |timer| waiting(timer) }
                   .reject { |task| PERIODIC.match?(scheduled_call(task).first&.source_location&.first.to_s) }
          end

          # The first element of its heap is always empty.
          def waiting(timer)
            heap = timer.instance_variable_get(:@queue).instance_variable_get(:@queue)
            heap.is_a?(Array) ? heap.compact : []
          end

          def scheduled_call(task) = [task.instance_variable_get(:@task), task.instance_variable_get(:@args)]

          def name(task, arguments)
            first = Array(arguments).first
            kind = first.class.name
            return job_name(first.instance_variable_get(:@job_data)) if kind == ACTIVE_JOB
            return first.name if kind == "Class" && first.name

            (task.source_location if task.respond_to?(:source_location))&.join(":") || task.class.name
          end

          # A mail is named after its mailer.
          def job_name(data)
            return data["job_class"] unless data["job_class"] == "ActionMailer::MailDeliveryJob"

            data["arguments"].first(2).join("#")
          end

          # Only the thread itself knows its task, but its backtrace shows the line.
          def running_names
            count = @pools.sum { |pool| own?(pool) ? running(pool) : 0 }
            traces = Thread.list.filter_map(&:backtrace).select { |lines| lines.grep(RUNNING).any? }
            lines = traces.map { |trace| Audit::Sites.application_line(trace) || trace.first }.first(count)
            (lines + Array.new([count - lines.size, 0].max, "a task")).map { |line| "#{line} (running)" }
          end
        end
      end
    end
  end
end
