# frozen_string_literal: true

require "sidekiq/fetch"
require "pando/swarm/runners/sidekiq/holdings"
require "pando/swarm/runners/sidekiq/recovery"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Takes jobs out of queues without losing them when the process dies. Sidekiq's own fetch removes a job from
        # Redis before it runs; this one moves it to a list of the process (Holdings) until it has run. Sidekiq decides
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
          Unit = Struct.new(:queue, :job, :holdings) do
            def queue_name = queue.delete_prefix("queue:")
            def acknowledge = holdings.acknowledge(queue, job)
            def requeue = holdings.give_back(queue, job)
          end

          # @return [#acknowledge, #requeue, #queue_name, #job, nil]
          def retrieve_work
            holdings = Holdings.current
            return super unless holdings

            turn = holdings.trials.turn
            return sleep(Trials::PAUSE) && nil if turn == :wait

            queues = queues_cmd
            queue, job = holdings.fetch { turn == :take ? holdings.trials.take(queues) : next_job(queues, holdings) }
            Unit.new(queue, job, holdings) if job
          end

          # Interrupted jobs stay held until their threads are gone. Then all go back at once.
          def bulk_requeue(units)
            super unless Holdings.current
          end

          # Computed now, not when this object was made: another kind of node may have been forked from this process
          # since.
          def queues_cmd
            names = config.queues.map { |name| "queue:#{name}" }
            config.mode == :strict ? names.uniq : names.shuffle.uniq
          end

          private

          def next_job(queues, holdings) = queues.size > 1 ? first(queues, holdings) : wait(queues.first, holdings)

          # Redis waits on one list only, so each query takes another queue in turn. With as many processors as queues,
          # a processor waits on each. With fewer, a job may wait up to a second at quiet times.
          def first(queues, holdings)
            found = redis { |connection| connection.call("EVAL", FIRST, queues.size * 2, *pairs(queues, holdings)) }
            return found if found

            @turn = @turn.to_i + 1
            wait(queues.sort[@turn % queues.size], holdings)
          end

          def pairs(queues, holdings) = queues.flat_map { |queue| [queue, holdings.list(queue)] }

          def wait(queue, holdings)
            job = redis do |connection|
              connection.blocking_call(WAIT, "BLMOVE", queue, holdings.list(queue), "RIGHT", "LEFT", WAIT)
            end
            [queue, job] if job
          end
        end
      end
    end
  end
end
