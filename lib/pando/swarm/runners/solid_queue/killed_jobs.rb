# frozen_string_literal: true

require "pando/events"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # Decides what happens to the jobs that a dead process had claimed. Each job's row says how many processes have
        # died with it; with too many, the job fails. Before its last attempt a job is a suspect. Of several suspects
        # only one is given back at a time, the next when that one has ended, so that no healthy job fails together with
        # a deadly one. If a process dies with a suspect and other jobs, nobody knows which of them killed it: then it
        # takes more such deaths until the job fails. The dead process's registration keeps the other suspects
        # meanwhile.
        #
        # Owned by the Claims. Runs in the thread beside the jobs.
        #
        # @api private
        class KilledJobs
          # How many processes may die with a job, and by which factor more if each had other jobs too.
          DEATHS = 3
          DOUBT = 2
          # The key of that number in a job's row, beside Active Job's own data. Active Job ignores it.
          COUNT = "pando_deaths"
          # The key in a registration of the suspect that was given back last.
          ON_TRIAL = :pando_on_trial

          # All that is known of a dead process, in the form that Solid Queue's error expects.
          Status = Struct.new(:pid) do
            def exitstatus = nil
            def signaled? = false
          end
          private_constant :Status

          # @param kind [String] the name of the node's kind
          # @param deaths [Integer] deaths until a job fails
          def initialize(kind, deaths)
            @kind = kind
            @deaths = deaths
          end

          # Call it in a transaction that has locked the registrations.
          # @param registrations [Array<SolidQueue::Process>] all registrations of one dead process
          def settle(registrations)
            first = registrations.first
            return if under_way?(first.metadata[ON_TRIAL])

            claims = claims_of(registrations)
            claims = blame(claims, first.pid) unless first.metadata[ON_TRIAL]
            suspected, others = claims.partition { |claim| deaths(claim.job) + 1 >= @deaths }
            return registrations.each(&:deregister) if suspected.size < 2

            others.each(&:release)
            try(suspected.last, first)
          end

          private

          def under_way?(job_id)
            job_id && [::SolidQueue::ReadyExecution, ::SolidQueue::ClaimedExecution].any? do |executions|
              executions.exists?(job_id: job_id)
            end
          end

          def claims_of(registrations)
            ::SolidQueue::ClaimedExecution.where(process_id: registrations.map(&:id)).order(:id).includes(:job).to_a
          end

          # The job that was claimed last is tried first: it is probably the cause, and probably ends soon.
          def try(claim, registration)
            claim.release
            registration.update!(metadata: registration.metadata.merge(ON_TRIAL => claim.job_id))
          end

          # @return [Array<SolidQueue::ClaimedExecution>] the jobs that have not failed
          def blame(claims, pid)
            most = claims.one? || @deaths == 1 ? @deaths : @deaths * DOUBT
            claims.reject do |claim|
              deaths = deaths(claim.job) + 1
              fatal = deaths >= most
              # If somebody retries the job by hand, its count starts again.
              note(claim.job, fatal ? nil : deaths)
              fail_with(claim, pid) if fatal
              tell(claim.job, pid, deaths, fatal)
              fatal
            end
          end

          def deaths(job) = job.arguments[COUNT].to_i

          def note(job, deaths) = job.update!(arguments: job.arguments.merge(COUNT => deaths).compact)

          def fail_with(claim, pid)
            error = ::SolidQueue::Processes::ProcessExitError.new(Status.new(pid))
            ::SolidQueue::ClaimedExecution.where(id: claim.id).fail_all_with(error)
          end

          def tell(job, pid, deaths, fatal)
            about = { node: @kind, name: job.class_name, id: job.active_job_id, deaths: deaths }
            Events.emit("job.killed", **about, pid: pid, reason: fatal ? "it has failed" : "it runs again")
            Events.emit("job.buried", **about, queue: job.queue_name, reason: "it has failed") if fatal
          end
        end
      end
    end
  end
end
