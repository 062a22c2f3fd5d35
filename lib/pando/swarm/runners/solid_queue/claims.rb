# frozen_string_literal: true

require "socket"
require "pando/swarm/runners/solid_queue/killed_jobs"
require "pando/swarm/runners/solid_queue/life"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # Takes care of the jobs of dead processes, as Solid Queue's supervisor does. But where the supervisor lets
        # these jobs fail, Pando runs them again. A killed worker leaves jobs that it has claimed, which no other
        # process takes. See KilledJobs.
        #
        # Owned by the runner. Runs in the thread beside the jobs.
        #
        # @api private
        class Claims
          # @param kind [String] the name of the node's kind
          # @param again [Boolean] whether such jobs run again; false: they fail, as with Solid Queue
          def initialize(kind, again:)
            @again = again
            @killed = KilledJobs.new(kind, again ? KilledJobs::DEATHS : 1)
          end

          # @param ours [Array<Integer>] ids of the registrations of this process
          def recover(ours)
            drop
            bury(dead(ours))
            adopt
          end

          private

          # Deletes claims whose job was deleted: nothing can be done with them.
          def drop
            ids = ::SolidQueue::ClaimedExecution.where.missing(:job).ids
            ::SolidQueue::ClaimedExecution.where(id: ids).delete_all if ids.any?
          end

          # Processes of this machine as soon as they are dead; others when they have been silent for too long.
          def dead(ours)
            silent_since = ::SolidQueue.process_alive_threshold.ago
            ::SolidQueue::Process.where.not(id: ours).select do |one|
              one.last_heartbeat_at <= silent_since || surely_dead?(one)
            end
          end

          def surely_dead?(one) = one.hostname == Socket.gethostname && Life.over?(one.pid, one.metadata[:life])

          # If several nodes look at the same time, only one gets a row; the others skip it.
          def bury(dead)
            return if dead.empty?

            ::SolidQueue::Process.transaction do
              locked = ::SolidQueue::Process.where(id: dead.map(&:id)).order(:id).non_blocking_lock
              locked.group_by { |one| [one.hostname, one.pid, one.metadata[:life]] }.each_value do |registrations|
                @killed.settle(registrations)
              end
            end
          end

          # Deals with claims of processes that are not registered any more.
          def adopt
            ids = ::SolidQueue::ClaimedExecution.orphaned.ids
            return if ids.empty?

            ::SolidQueue::ClaimedExecution.transaction do
              # The lock leaves out claims that another process has dealt with meanwhile.
              orphans = ::SolidQueue::ClaimedExecution.where(id: ids).non_blocking_lock
              @again ? orphans.release_all : orphans.fail_all_with(::SolidQueue::Processes::ProcessMissingError.new)
            end
          end
        end
      end
    end
  end
end
