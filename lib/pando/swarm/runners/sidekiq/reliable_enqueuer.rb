# frozen_string_literal: true

require "sidekiq/scheduled"
require "pando/swarm/runners/sidekiq/due_jobs"
require "pando/swarm/runners/sidekiq/held_jobs"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Pushes scheduled jobs and retries to their queues when they are due, without losing them when the process
        # dies. Sidekiq's own class removes a job from its set before it pushes it; this one moves it to a set of the
        # process (DueJobs) until it is pushed. Sidekiq's client pushes it, with the app's middleware.
        #
        # One per scheduler, called by the scheduler's thread.
        class ReliableEnqueuer < ::Sidekiq::Scheduled::Enq
          def initialize(config)
            super
            @held_jobs = HeldJobs.current
          end

          def enqueue_jobs(sets = DueJobs::SETS)
            return super unless @held_jobs

            @held_jobs.ensure_registered
            due_jobs.put_back # what a former call could not
            begin
              sets.each { |set| enqueue_due(set) }
            ensure
              due_jobs.put_back
            end
          end

          private

          def due_jobs = @held_jobs.due_jobs

          # A job that is postponed meanwhile is left for the next call, so that the next set has its turn.
          def enqueue_due(set)
            now = Time.now.to_f
            while !@done && (job = due_jobs.take(set, now))
              enqueue(set, job)
            end
          end

          # Any exception postpones the job, such as a LoadError of a middleware. With its old time the job would be the
          # first again after each restart of the scheduler.
          def enqueue(set, job)
            @client.push(::Sidekiq.load_json(job))
          rescue Exception => e # rubocop:disable Lint/RescueException
            due_jobs.postpone(set, job)
            handle_exception(e, { context: "a due job could not be pushed to its queue", payload: job })
            raise unless e.is_a?(StandardError)
          else
            due_jobs.pushed(set, job)
            logger.debug { "enqueued #{set}: #{job}" }
          end
        end
      end
    end
  end
end
