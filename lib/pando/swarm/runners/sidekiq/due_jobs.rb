# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # The scheduled jobs and retries that the scheduler of one run has taken out of Sidekiq's sets and not yet
        # pushed to their queues. SET is `schedule` or `retry`:
        #
        #   pando:sidekiq:due:IDENTITY:SET   a sorted set of jobs
        #
        # Owned by the HeldJobs of the run and used by its scheduler's thread. When that has ended, the HeldJobs puts
        # back what is left; when the process has died, the Recovery of another one does.
        class DueJobs
          SETS = %w[retry schedule].freeze
          # Seconds until a job is due again whose push has raised, or whose process has died.
          AGAIN = 30

          # Takes the job that has been due for longest. KEYS: the set to take from, and the one to move to. ARGV: the
          # time. If Redis has no free memory, it refuses the ZADD, and the job stays.
          TAKE = <<~LUA
            local due = redis.call("ZRANGE", KEYS[1], "-inf", ARGV[1], "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
            if not due[1] then return false end
            redis.call("ZADD", KEYS[2], due[2], due[1])
            redis.call("ZREM", KEYS[1], due[1])
            return due[1]
          LUA

          # Puts all jobs back. KEYS: as above. ARGV: their new time; without it they keep theirs. The DEL comes first:
          # without free memory, Redis allows the ZADD only to a script that has written already.
          PUT_BACK = <<~LUA
            local jobs = redis.call("ZRANGE", KEYS[1], 0, -1, "WITHSCORES")
            redis.call("DEL", KEYS[1])
            for i = 1, #jobs, 2 do redis.call("ZADD", KEYS[2], ARGV[1] or jobs[i + 1], jobs[i]) end
          LUA

          # Puts one job back, with another time.
          POSTPONE = <<~LUA
            if redis.call("ZREM", KEYS[1], ARGV[1]) == 1 then redis.call("ZADD", KEYS[2], ARGV[2], ARGV[1]) end
          LUA

          # For scripts, also for that of the Recovery: counts a death. The key expires so many seconds after the first.
          COUNT_DEATH = <<~LUA
            local function count_death(key, seconds)
              local deaths = redis.call("INCR", key)
              if deaths == 1 then redis.call("EXPIRE", key, seconds) end
              return deaths
            end
          LUA

          # Puts one job back that the process may have died of, or into the dead set if that happens too often. KEYS:
          # as above, the number of deaths, the dead set. ARGV: the job, its new time, how many processes may die of it,
          # for how long that is remembered, the time.
          BLAME = COUNT_DEATH + <<~LUA
            if redis.call("ZREM", KEYS[1], ARGV[1]) == 0 then return 0 end
            local deaths = count_death(KEYS[3], ARGV[4])
            if deaths > tonumber(ARGV[3]) then redis.call("ZADD", KEYS[4], ARGV[5], ARGV[1])
            else redis.call("ZADD", KEYS[2], ARGV[2], ARGV[1]) end
            return deaths
          LUA

          # @param identity [String] Sidekiq's name for the run
          def initialize(config, identity)
            @config = config
            @identity = identity
            @pushed = [] # pairs of set and job that Redis still lists
          end

          # @param now [Float] @return [String, nil] a job that was due then
          def take(set, now) = call("EVAL", TAKE, 2, set, ours(set), now)

          # The job is in its queue, or a middleware has stopped it.
          def pushed(set, job)
            @pushed << [set, job]
            remove_pushed
          end

          # The job could not be pushed. It must not hold up those behind it.
          def postpone(set, job) = call("EVAL", POSTPONE, 2, ours(set), set, job, later)

          # Call it when no job is on its way to its queue. A job is left over if its push has failed, or if the reply
          # with it was lost.
          def put_back
            remove_pushed
            SETS.each { |set| call("EVAL", PUT_BACK, 2, ours(set), set) }
          end

          # Call these when the process has died, perhaps of the push: the others that are due go first.
          def postpone_all = SETS.each { |set| call("EVAL", PUT_BACK, 2, ours(set), set, later) }

          # @return [Array(String, String)] pairs of set and job
          def left = SETS.flat_map { |set| call("ZRANGE", ours(set), 0, -1).map { |job| [set, job] } }

          # @return [Integer] how many processes have died; 0: the job is not here any more
          def blame(set, job, counter, limit, remembered)
            call("EVAL", BLAME, 4, ours(set), set, counter, "dead", job, later, limit, remembered, Time.now.to_f)
          end

          private

          def later = Time.now.to_f + AGAIN
          def ours(set) = "pando:sidekiq:due:#{@identity}:#{set}"

          # If Redis is down, the next call removes them, so that they do not run again.
          def remove_pushed
            while (set, job = @pushed.first)
              call("ZREM", ours(set), job)
              @pushed.shift
            end
          end

          def call(*command) = @config.redis { |connection| connection.call(*command) }
        end
      end
    end
  end
end
