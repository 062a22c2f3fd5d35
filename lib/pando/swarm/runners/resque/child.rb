# frozen_string_literal: true

require "pando/events"
require "pando/fork_safety/queued_work"
require "pando/pidfd"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Resque
        # The process that runs one job: a plain child of the node, which dies with the node. Made in the node's job
        # thread, whose child it is.
        class Child
          FAILED = 70 # its exit status after it has reported a failure to Resque
          SAY_WITHIN = 0.5 # seconds that its last lines have to be written
          FLUSH_WITHIN = 2.0 # seconds for telemetry after each job, whose server may not answer

          # The class of Rails' adapter. The job's own one is in its argument.
          WRAPPER = "ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper"
          # What is shown as a name. The payload may come from anybody who can write to Redis.
          NAME = /\A[[:word:]:]{1,100}\z/

          # @param payload [Object] of a job
          # @return [String] its class, for people
          def self.name_of(payload)
            payload = {} unless payload.is_a?(Hash)
            name, arguments = payload.values_at("class", "args")
            first = arguments.first if arguments.is_a?(Array)
            inner = first["job_class"] if name == WRAPPER && first.is_a?(Hash)
            [inner, name].find { |text| text.is_a?(String) && text.valid_encoding? && NAME.match?(text) } || "?"
          end

          # @param node [Node] @param seconds [Numeric, nil] how long the job may take
          def initialize(worker, job, node, seconds)
            @worker = worker
            @node = node
            @patience = worker.term_timeout
            @end_at = Sys.now + seconds if seconds
            parent = Process.pid
            @pid = fork { work(parent, job) }
            @pidfd = watch
          end

          # @return [IO] readable when the process has ended
          def to_io = @pidfd.to_io

          # Tells the process to end when its time is over, and kills it if it does not.
          # @param at_once [Boolean] its time is over in any case
          # @return [Float, nil] seconds until the next call
          def enforce_timeout(at_once)
            @end_at = Sys.now if at_once && !@kill_at
            return seconds_until(@kill_at) { @pidfd.signal("KILL") } if @kill_at

            seconds_until(@end_at) do
              @kill_at = Sys.now + @patience
              @pidfd.signal("TERM")
            end
          end

          # @return [Process::Status] call it when the process has ended
          def reap
            Process.wait2(@pid).last
          ensure
            @pidfd.close
          end

          private

          # The node reports a job that it cannot watch as failed, so its process must not go on.
          def watch
            Pidfd.new(@pid)
          rescue StandardError
            Process.kill(:KILL, @pid)
            Process.wait(@pid)
            raise
          end

          def seconds_until(time)
            return unless time

            left = time - Sys.now
            return left if left > 0

            yield
            @patience
          end

          # Does what Resque's worker does in its child. The process dies with the thread that forked it.
          def work(parent, job)
            Sys.die_with_parent!
            @worker.forget_failures # of the node: only this job's count
            exit!(FAILED) unless Process.ppid == parent
            @worker.unregister_signal_handlers
            Process.setproctitle("pando job of #{@node} #{Child.name_of(job.payload)}")
            @worker.fork_per_job = false # this process is the fork
            connect
            perform(job)
            finish_queues
            exit!(@worker.reported_failure? ? FAILED : 0)
          end

          def perform(job)
            @worker.run_hook(:after_fork, job)
          rescue Exception => e # rubocop:disable Lint/RescueException
            @worker.report_failed_job(job, e)
          else
            @worker.perform(job)
          end

          # Libraries work off their queues in threads, and the node's threads are not here. So a child that has started
          # none has nothing to finish, and need not search.
          def finish_queues(by = Sys.now + @node.finish_within)
            return if Thread.list.one?

            finish_by(by)
          rescue ::Resque::TermException # its time is over, or the node ends
            finish_by(Sys.now)
          end

          def finish_by(time)
            ForkSafety::QueuedWork.finish(time, method(:report), flush_within: FLUSH_WITHIN).each do |dropped|
              Events.emit("work.dropped", **here, library: dropped.library, count: dropped.pieces, names: dropped.names)
            end
            Events.proceed(SAY_WITHIN)
          end

          def report(library, error)
            Events.emit("library.failed", **here, library: library, reason: "#{error.message} (#{error.class})")
          end

          def here = { slot: @node.number, pid: Process.pid }

          # Waits for Redis: the job exists nowhere else.
          def connect
            @worker.reconnect
          rescue *Worker::AWAY
            sleep(Worker::PAUSE)
            retry
          end
        end

        # Matches the errors of a Redis that is up and cannot serve yet: it loads its data, or its cluster lacks nodes.
        module NotReady
          MESSAGES = %w[LOADING CLUSTERDOWN TRYAGAIN].freeze

          def self.===(error) = error.is_a?(::Redis::CommandError) && error.message.start_with?(*MESSAGES)
        end

        # The node's entry in Resque's list of workers: one per node, named by host, pid and queues. Lives in a node,
        # and in the child that runs a job.
        class Worker < ::Resque::Worker
          # Resque's own workers unregister every worker of their host that is not a process called "resque". With the
          # suffix, nodes count as workers of another host.
          HOST_SUFFIX = ".pando"
          # Errors that mean that Redis is down.
          AWAY = [::Redis::BaseConnectionError, NotReady, SystemCallError, IOError].freeze
          # Seconds between two tries to report a failure to Redis.
          PAUSE = 1

          def initialize(*queues)
            super
            self.hostname = "#{hostname}#{HOST_SUFFIX}"
          end

          # @return [Array<String>] pids of all processes on this machine. Resque's own version looks at command names
          def worker_pids = Dir.children("/proc").grep(/\A\d+\z/)

          # @return [Boolean] whether this process has reported a failure
          def reported_failure? = @reported_failure == true

          def forget_failures = @reported_failure = false

          # In the child: if nobody hears of the failure, the job is lost. So it waits for Redis.
          def report_failed_job(job, exception)
            @reported_failure = true
            ::Resque.redis.ping
            super
          rescue *AWAY
            sleep(PAUSE)
            retry
          end
        end
      end
    end
  end
end
