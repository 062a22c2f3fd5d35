# frozen_string_literal: true

require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Runs jobs with which processes have died repeatedly. Each runs alone in its process, so no other job dies with
        # it, and another death leaves no doubt about the cause. They wait in lists of their own:
        #
        #   pando:sidekiq:suspects:QUEUE   a list of jobs, the newest on the left
        #   pando:sidekiq:trial:IDENTITY   the job that this process runs alone
        #   pando:sidekiq:room             the process whose turn it is to make room for one
        #
        # A process that has just started has room for them; usually it replaces one that such a job has killed. Other
        # processes take one when they are idle. If a job has waited for long, one of them makes room.
        #
        # Owned by the HeldJobs. Sidekiq's processors and the Heartbeat call it.
        class SuspectJobs
          ROOM = "pando:sidekiq:room"
          # Seconds that a processor pauses while a job runs alone, or is about to.
          PAUSE = 0.1
          # Seconds until a busy process makes room; how long it waits for its jobs to end; and until a process may do
          # so again.
          PATIENCE = 60
          LONGEST = 30
          AGAIN = 300

          # Takes the first suspect of the first queue that has one. KEYS: the key of the trial, and pairs of the list
          # to move from and the list to move to.
          TAKE = <<~LUA
            for i = 2, #KEYS, 2 do
              local job = redis.call("LMOVE", KEYS[i], KEYS[i + 1], "RIGHT", "LEFT")
              if job then
                redis.call("SET", KEYS[1], job)
                return {i / 2 - 1, job}
              end
            end
            return false
          LUA

          def self.list(queue) = "pando:sidekiq:suspects:#{queue.delete_prefix("queue:")}"
          def self.trial(identity) = "pando:sidekiq:trial:#{identity}"

          # @param held_jobs [HeldJobs] ours @param recovery [Recovery]
          def initialize(config, held_jobs, recovery)
            @config = config
            @held_jobs = held_jobs
            @recovery = recovery
            @first_update = Mutex.new
            @lock = Mutex.new
          end

          # What the calling processor should do: fetch a job as usual, take a suspect, or wait.
          # @return [:fetch, :take, :wait]
          # @raise [RedisClient::Error]
          def turn
            update_once
            @lock.synchronize do
              @alone = nil if @alone == Thread.current || !@alone&.alive?
              next :wait if @alone
              next :fetch unless @waiting_since

              others = @held_jobs.activity_beside(Thread.current)
              next others == :jobs && !room? ? :fetch : :wait if others

              @alone = Thread.current
              :take
            end
          end

          # @param queues [Array<String>]
          # @return [Array(String, String), nil] queue and job, which is ours now
          def take(queues)
            lists = queues.flat_map { |queue| [self.class.list(queue), @held_jobs.list(queue)] }
            index, job = call("EVAL", TAKE, 1 + lists.size, self.class.trial(@held_jobs.identity), *lists)
            return nothing_left unless job

            @job = job
            [queues[index], job]
          end

          # @return [Boolean] whether this is the job that runs alone
          def alone?(job) = !@job.nil? && @job == job

          # The job has ended and no process has died with it; or it was given back.
          def finish
            call("UNLINK", self.class.trial(@held_jobs.identity))
            @job = nil
          end

          # Now and then.
          # @raise [RedisClient::Error]
          def update
            @recovery.recover_dead
            count_waiting
          end

          private

          # The jobs of a dead predecessor are found before any other job begins.
          def update_once
            return if @updated

            @first_update.synchronize do
              next if @updated

              update
              @updated = true
            end
          end

          def count_waiting
            waiting = @config.redis do |redis|
              redis.pipelined { |all| @held_jobs.queues.each { |queue| all.call("LLEN", self.class.list(queue)) } }
            end
            @lock.synchronize { @waiting_since = waiting.sum.positive? ? @waiting_since || Sys.now : nil }
            make_room if @waiting_since && Sys.now - @waiting_since > PATIENCE && !room?
          end

          # One process at a time, and not for long, because its own jobs wait meanwhile.
          def make_room
            return unless call("SET", ROOM, @held_jobs.identity, "NX", "EX", AGAIN)

            @room_until = Sys.now + LONGEST
          end

          def room? = !@room_until.nil? && Sys.now < @room_until

          def nothing_left
            @lock.synchronize { @waiting_since = @alone = @room_until = nil }
            nil
          end

          def call(*command) = @config.redis { |redis| redis.call(*command) }
        end
      end
    end
  end
end
