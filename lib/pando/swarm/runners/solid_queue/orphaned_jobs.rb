# frozen_string_literal: true

require "pando/events"
require "pando/swarm/process_identity"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # Takes care of the jobs of dead processes, as Solid Queue's supervisor does. But where the supervisor lets
        # these jobs fail, Pando runs them again. A killed worker leaves jobs that it has claimed, which no other
        # process takes. See KilledJobs.
        #
        # Owned by the runner. Runs in the thread beside the jobs.
        class OrphanedJobs
          # @param again [Boolean] whether such jobs run again; false: they fail, as with Solid Queue
          def initialize(kind, again:)
            @again = again
            @killed = KilledJobs.new(kind, again ? KilledJobs::DEATHS : 1)
          end

          # @param ours [Array<String>] names of our registrations
          def recover(ours)
            delete_claims_without_job
            settle(dead(ours))
            release_unregistered
          end

          private

          # Deletes claims whose job was deleted: nothing can be done with them.
          def delete_claims_without_job
            ids = ::SolidQueue::ClaimedExecution.where.missing(:job).ids
            ::SolidQueue::ClaimedExecution.where(id: ids).delete_all if ids.any?
          end

          # Processes of this machine as soon as they are dead; others when they have been silent for too long. A former
          # run of this process has ended, but may have failed to say so.
          def dead(ours)
            silent_since = ::SolidQueue.process_alive_threshold.ago
            ::SolidQueue::Process.where.not(name: ours).select do |one|
              case ProcessIdentity.state(one.metadata[:life])
              when :dead then true
              when :alive then one.pid == ::Process.pid && one.last_heartbeat_at <= silent_since
              else one.last_heartbeat_at <= silent_since
              end
            end
          end

          # If several nodes look at the same time, only one gets a row; the others skip it.
          def settle(dead)
            return if dead.empty?

            @killed.report_after { ::SolidQueue::Process.transaction { settle_locked(dead) } }
          end

          def settle_locked(dead)
            locked = ::SolidQueue::Process.where(id: dead.map(&:id)).order(:id).non_blocking_lock
            locked.group_by { |one| [one.hostname, one.pid, one.metadata[:life]] }.each_value do |registrations|
              @killed.settle(registrations)
            end
          end

          # Deals with claims of processes that are not registered any more.
          def release_unregistered
            ids = ::SolidQueue::ClaimedExecution.orphaned.ids
            return if ids.empty?

            ::SolidQueue::ClaimedExecution.transaction do
              # The lock leaves out claims that another process has dealt with meanwhile.
              orphans = ::SolidQueue::ClaimedExecution.where(id: ids).non_blocking_lock
              @again ? orphans.release_all : orphans.fail_all_with(::SolidQueue::Processes::ProcessMissingError.new)
            end
          end
        end

        # Decides what happens to the jobs that a dead process had claimed. Each job's row says how many processes have
        # died with it; with too many, the job fails. Before its last attempt a job is a suspect. Of several suspects
        # only one is given back at a time, the next when that one has ended, so that no healthy job fails together with
        # a deadly one. If a process dies with a suspect and other jobs, nobody knows which of them killed it: then it
        # takes more such deaths until the job fails. The dead process's registration keeps the other suspects
        # meanwhile.
        #
        # Owned by OrphanedJobs. Runs in the thread beside the jobs.
        class KilledJobs
          # How many processes may die with a job, and by which factor more if each had other jobs too.
          DEATHS = 3
          DOUBT_FACTOR = 2
          # The key of that number in a job's row, beside Active Job's own data. Active Job ignores it.
          COUNT = "pando_deaths"
          # The key in a registration of the suspect that was given back last.
          RELEASED_SUSPECT = :pando_on_trial

          # All that is known of a dead process, in the form that Solid Queue's error expects.
          Status = Struct.new(:pid) do
            def exitstatus = nil
            def signaled? = false
          end
          private_constant :Status

          # @param deaths [Integer] deaths until a job fails
          def initialize(kind, deaths)
            @kind = kind
            @deaths = deaths
          end

          # Reports what the block has settled once it has committed that, so at most once. If this process dies before
          # the commit, another one settles and reports the same; if it dies right after the commit, nobody reports it.
          def report_after
            @reports = []
            yield
            @reports.each { |name, facts| Events.emit(name, **facts) }
          end

          # Call it in #report_after and in a transaction that has locked the registrations, which are all of one dead
          # process.
          def settle(registrations)
            first = registrations.first
            return if unfinished?(first.metadata[RELEASED_SUSPECT])

            claims = claims_of(registrations)
            claims = blame(claims, first.pid) unless first.metadata[RELEASED_SUSPECT]
            suspected, others = claims.partition { |claim| deaths(claim.job) + 1 >= @deaths }
            return registrations.each(&:deregister) if suspected.size < 2

            others.each(&:release)
            release_suspect(suspected.last, first)
          end

          private

          def unfinished?(job_id)
            job_id && [::SolidQueue::ReadyExecution, ::SolidQueue::ClaimedExecution].any? do |executions|
              executions.exists?(job_id: job_id)
            end
          end

          def claims_of(registrations)
            ::SolidQueue::ClaimedExecution.where(process_id: registrations.map(&:id)).order(:id).includes(:job).to_a
          end

          # The job that was claimed last is tried first: it is probably the cause, and probably ends soon.
          def release_suspect(claim, registration)
            claim.release
            registration.update!(metadata: registration.metadata.merge(RELEASED_SUSPECT => claim.job_id))
          end

          # @return [Array<SolidQueue::ClaimedExecution>] the jobs that have not failed
          def blame(claims, pid)
            most = claims.one? || @deaths == 1 ? @deaths : @deaths * DOUBT_FACTOR
            claims.reject do |claim|
              deaths = deaths(claim.job) + 1
              fatal = deaths >= most
              # If somebody retries the job by hand, its count starts again.
              note(claim.job, fatal ? nil : deaths)
              fail_with(claim, pid) if fatal
              report(claim.job, pid, deaths, fatal)
              fatal
            end
          end

          def deaths(job) = job.arguments[COUNT].to_i

          def note(job, deaths) = job.update!(arguments: job.arguments.merge(COUNT => deaths).compact)

          def fail_with(claim, pid)
            error = ::SolidQueue::Processes::ProcessExitError.new(Status.new(pid))
            ::SolidQueue::ClaimedExecution.where(id: claim.id).fail_all_with(error)
          end

          def report(job, pid, deaths, fatal)
            about = { node: @kind, name: job.class_name, id: job.active_job_id, deaths: deaths }
            @reports << ["job.killed", { **about, pid: pid, reason: fatal ? "it has failed" : "it runs again" }]
            @reports << ["job.buried", { **about, queue: job.queue_name, reason: "it has failed" }] if fatal
          end
        end
      end
    end
  end
end
