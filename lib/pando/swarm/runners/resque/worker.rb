# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Resque
        # The node's entry in Resque's list of workers: one per node, named by host, pid and queues. Lives in a node,
        # and in the child that runs a job.
        #
        # @api private
        class Worker < ::Resque::Worker
          # Resque's own workers unregister every worker of their host that is not a process called "resque". With the
          # suffix, nodes count as workers of another host.
          HOST_SUFFIX = ".pando"
          # Errors that mean that Redis is down.
          AWAY = [::Redis::BaseConnectionError, SystemCallError, IOError].freeze
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
