# frozen_string_literal: true

require "pando/events"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # What becomes of the jobs that a dead process had claimed. Each carries in its row how many processes have died
        # with it; it fails when there are too many. Before its last try a job is suspected: of several such jobs one
        # is given back at a time, the next when that one has ended, so that no healthy job fails with a deadly one. If
        # a process that dies with a suspected job has others as well, which of them it died of is not known: it takes
        # more such deaths until it fails.
        # The registration of the dead process keeps the others meanwhile.
        #
        # Owned by the Claims; runs in the thread beside the jobs.
        #
        # @api private
        class KilledJobs
          # How many processes may die with a job, and how many times as many that have others besides.
          DEATHS = 3
          DOUBT = 2
          # Where a job's row has their number: beside what Active Job keeps there, which takes no notice.
          COUNT = "pando_deaths"
          # Where a registration has the suspected job that was given back last.
          ON_TRIAL = :pando_on_trial

          # All that is known of a dead process, in the form that Solid Queue's error asks for.
          Status = Struct.new(:pid) do
            def exitstatus = nil
            def signaled? = false
          end
          private_constant :Status

          # @param kind [String] the name of the node's kind
          # @param deaths [Integer] how many it takes until a job fails
          def initialize(kind, deaths)
            @kind = kind
            @deaths = deaths
          end

          # In a transaction that has locked them.
          # @param registrations [Array<SolidQueue::Process>] all of one dead process
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

          # The job that was claimed last is tried first: it is likely to be the one, and to end soon.
          def try(claim, registration)
            claim.release
            registration.update!(metadata: registration.metadata.merge(ON_TRIAL => claim.job_id))
          end

          # @return [Array<SolidQueue::ClaimedExecution>] those that have not failed
          def blame(claims, pid)
            most = claims.one? || @deaths == 1 ? @deaths : @deaths * DOUBT
            claims.reject do |claim|
              deaths = deaths(claim.job) + 1
              fatal = deaths >= most
              # If somebody retries it by hand, it begins anew.
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
            Events.emit("job.killed", **about, pid: pid, reason: fatal ? "it has failed" : "it is done again")
            Events.emit("job.buried", **about, queue: job.queue_name, reason: "it has failed") if fatal
          end
        end
      end
    end
  end
end
