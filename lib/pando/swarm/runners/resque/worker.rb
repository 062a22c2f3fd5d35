# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Resque
        # A Resque worker as Resque's list of them knows it: one for each node, named by its host, pid and queues.
        # Lives in a node, and in the child that does a job.
        #
        # @api private
        class Worker < ::Resque::Worker
          # Resque's own workers bury those of their host whose process is not called "resque": so this is another host.
          HOST_SUFFIX = ".pando"
          # What says that Redis is away.
          AWAY = [::Redis::BaseConnectionError, SystemCallError, IOError].freeze
          # Seconds between two tries to tell Redis of a failure.
          PAUSE = 1

          def initialize(*queues)
            super
            self.hostname = "#{hostname}#{HOST_SUFFIX}"
          end

          # @return [Array<String>] of all that lives on this machine. Resque looks at the names of commands
          def worker_pids = Dir.children("/proc").grep(/\A\d+\z/)

          # @return [Boolean] a failure was reported in this process
          def reported_failure? = @reported_failure == true

          # In the child: a failure that nobody is told of would be a job that is lost.
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
