# frozen_string_literal: true

require "sidekiq/fetch"
require "pando/swarm/runners/sidekiq/held_jobs"
require "pando/swarm/runners/sidekiq/recovery"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Takes jobs out of queues without losing them when the process dies. Sidekiq's own fetch removes a job from
        # Redis before it runs; this one moves it to a list of the process (HeldJobs) until it has run. Sidekiq decides
        # the order and weights of queues.
        #
        # One per capsule, called by Sidekiq's processors. Made once in a process and its children.
        class ReliableFetch < ::Sidekiq::BasicFetch
          # Seconds that one query of Redis waits for a job.
          WAIT = 1

          # Takes the first job of the first queue that has one. KEYS are pairs: a queue, and the list to move to.
          FIRST = <<~LUA
            for i = 1, #KEYS, 2 do
              local job = redis.call("LMOVE", KEYS[i], KEYS[i + 1], "RIGHT", "LEFT")
              if job then return {KEYS[i], job} end
            end
            return false
          LUA

          # A held job.
          Unit = Struct.new(:queue, :job, :held_jobs) do
            def queue_name = queue.delete_prefix("queue:")
            def acknowledge = held_jobs.acknowledge(queue, job)
            def requeue = held_jobs.give_back(queue, job)
          end

          def retrieve_work
            held_jobs = HeldJobs.current
            return super unless held_jobs

            turn = held_jobs.suspects.turn
            return sleep(SuspectJobs::PAUSE) && nil if turn == :wait

            queues = queues_cmd
            queue, job = held_jobs.fetch do
              turn == :take ? held_jobs.suspects.take(queues) : next_job(queues, held_jobs)
            end
            Unit.new(queue, job, held_jobs) if job
          end

          # Interrupted jobs stay held until their threads are gone. Then all go back at once.
          def bulk_requeue(units)
            super unless HeldJobs.current
          end

          # Computed now, not when this object was made: another kind of node may have been forked from this process
          # since.
          def queues_cmd
            names = config.queues.map { |name| "queue:#{name}" }
            config.mode == :strict ? names.uniq : names.shuffle.uniq
          end

          private

          def next_job(queues, held_jobs) = queues.size > 1 ? first(queues, held_jobs) : wait(queues.first, held_jobs)

          # Redis waits on one list only, so each query takes another queue in turn. With as many processors as queues,
          # a processor waits on each. With fewer, a job may wait up to a second at quiet times.
          def first(queues, held_jobs)
            found = redis { |connection| connection.call("EVAL", FIRST, queues.size * 2, *pairs(queues, held_jobs)) }
            return found if found

            @turn = @turn.to_i + 1
            wait(queues.sort[@turn % queues.size], held_jobs)
          end

          def pairs(queues, held_jobs) = queues.flat_map { |queue| [queue, held_jobs.list(queue)] }

          def wait(queue, held_jobs)
            job = redis do |connection|
              connection.blocking_call(WAIT, "BLMOVE", queue, held_jobs.list(queue), "RIGHT", "LEFT", WAIT)
            end
            [queue, job] if job
          end
        end
      end
    end
  end
end
