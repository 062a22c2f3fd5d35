# frozen_string_literal: true

require "pando/pidfd"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Resque
        # The process that does one job: a plain child of the node, which dies with it. Made in the node's thread for
        # jobs, whose child it is.
        #
        # @api private
        class Child
          FAILED = 70 # its status when it has told Resque of a failure

          # @param worker [Worker] @param job [::Resque::Job]
          # @param title [String] as the list of processes shall show it
          # @param seconds [Numeric, nil] that the job may take
          def initialize(worker, job, title, seconds)
            @worker = worker
            @patience = worker.term_timeout
            @end_at = now + seconds if seconds
            node = Process.pid
            @pid = fork { work(node, job, title) }
            @pidfd = Pidfd.new(@pid)
          end

          # @return [IO] readable when it has ended
          def to_io = @pidfd.to_io

          # Tells it to end when it is time, and ends it when it did not.
          # @param at_once [Boolean] it is time in any case
          # @return [Float, nil] seconds until it is to be called again
          def press(at_once)
            @end_at = now if at_once && !@kill_at
            return seconds_until(@kill_at) { @pidfd.signal("KILL") } if @kill_at

            seconds_until(@end_at) do
              @kill_at = now + @patience
              @pidfd.signal("TERM")
            end
          end

          # @return [Process::Status] of one that has ended
          def reap
            Process.wait2(@pid).last
          ensure
            @pidfd.close
          end

          private

          def seconds_until(time)
            return unless time
            return time - now if time > now

            yield
            @patience
          end

          # What Resque's worker does in its child; it dies with the thread that has forked it.
          def work(node, job, title)
            Sys.die_with_parent!
            exit!(FAILED) unless Process.ppid == node
            @worker.unregister_signal_handlers
            Process.setproctitle("pando #{title} #{job.payload_class_name}")
            @worker.fork_per_job = false # this is the process for it
            connect
            perform(job)
            exit!(@worker.reported_failure? ? FAILED : 0)
          end

          def perform(job)
            @worker.run_hook(:after_fork, job)
          rescue Exception => e # rubocop:disable Lint/RescueException
            @worker.report_failed_job(job, e)
          else
            @worker.perform(job)
          end

          # The job waits for Redis: it is nowhere else.
          def connect
            @worker.reconnect
          rescue *Worker::AWAY
            sleep(Worker::PAUSE)
            retry
          end

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
