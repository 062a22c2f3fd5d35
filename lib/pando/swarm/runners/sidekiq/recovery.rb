# frozen_string_literal: true

require "json"
require "pando/events"
require "pando/swarm/process_identity"
require "pando/swarm/runners/sidekiq/due_jobs"
require "pando/swarm/runners/sidekiq/held_jobs"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Finds jobs that were held by dead processes, or by dead processors of ours, and gives them back to their
        # queues. From the second death on a job is a suspect and runs alone, see SuspectJobs. When too many processes
        # have died with it, it goes to Sidekiq's dead set instead. The DueJobs of dead processes go back to their sets,
        # or to the dead set for the same reason.
        #
        # Runs on the Heartbeat's thread of each node, and once on that of its first processor.
        class Recovery
          # How many processes may die with a job before it is taken for the cause; within so many seconds; and after
          # how many deaths it runs alone.
          DEATHS = 3
          REMEMBERED = 3 * 24 * 3600
          SUSPECT = 2
          # Seconds that a process elsewhere has to show a sign of life after its heartbeat in Redis has expired. All
          # heartbeats expire when Redis is down.
          GRACE = 30
          # Limit for a job's class and id in the event.
          BYTES = 200
          BURIED = "it goes to Sidekiq's dead set"
          private_constant :BURIED

          # One step, so that only one of several finders counts a job, and so that the job is always somewhere. KEYS:
          # the list of the dead, the queue, the suspects, the number of deaths, the dead set. ARGV: the job, how many
          # processes may die of it, from how many deaths on it is a suspect, for how long that is remembered, the time.
          BLAME = DueJobs::COUNT_DEATH + <<~LUA
            if redis.call("LREM", KEYS[1], 1, ARGV[1]) == 0 then return 0 end
            local deaths = count_death(KEYS[4], ARGV[4])
            if deaths > tonumber(ARGV[2]) then redis.call("ZADD", KEYS[5], ARGV[5], ARGV[1])
            elseif deaths >= tonumber(ARGV[3]) then redis.call("LPUSH", KEYS[3], ARGV[1])
            else redis.call("RPUSH", KEYS[2], ARGV[1]) end
            return deaths
          LUA

          # A process, or a run of one, that holds jobs and is dead, or has dead threads.
          Dead = Struct.new(:identity, :pid)
          private_constant :Dead

          def self.deaths(job_id) = "pando:sidekiq:deaths:#{job_id}"
          def self.deaths_at_push(job_id) = "pando:sidekiq:push-deaths:#{job_id}"

          # @param held_jobs [HeldJobs] ours @param kind [String] the name of the node's kind
          def initialize(config, held_jobs, kind)
            @config = config
            @held_jobs = held_jobs
            @kind = kind
            @silent_since = {} # identity => since when
            @lock = Mutex.new
          end

          # Now and then.
          def recover_dead
            @lock.synchronize do
              recover_own_threads
              others = call("HGETALL", HeldJobs::HOLDERS).except(@held_jobs.identity)
              @silent_since.keep_if { |identity, _| others.key?(identity) }
              others.each do |identity, text|
                process = parse(text)
                recover(identity, process) if dead?(identity, process)
              end
            end
          rescue ::Sidekiq::RedisClientAdapter::BaseError
            @silent_since.clear
            raise
          end

          private

          # Calls Redis on a connection of the pool.
          def call(*command) = @config.redis { |connection| connection.call(*command) }

          def parse(text)
            hash = JSON.parse(text)
            hash.is_a?(Hash) ? hash : {}
          rescue JSON::ParserError
            {}
          end

          # A former run in this process has ended too, and has said so, unless Redis was down.
          def dead?(identity, process)
            case ProcessIdentity.state(process)
            when :dead then true
            when :alive then process["pid"] == Process.pid && !UnreportedRuns.include?(identity)
            else silent?(identity)
            end
          end

          # Sidekiq's heartbeat keeps a key of this name for a minute.
          def silent?(identity)
            if call("EXISTS", identity).positive?
              @silent_since.delete(identity)
              return false
            end

            @silent_since[identity] ||= Sys.now
            Sys.now - @silent_since[identity] > GRACE
          end

          def recover_own_threads
            ours = Dead.new(@held_jobs.identity, Process.pid)
            @held_jobs.abandoned.each do |queue, job|
              @held_jobs.end_trial(job) # before another processor can take it
              blame(ours, queue, job)
              @held_jobs.forget(queue, job)
            end
          end

          def recover(identity, process)
            queues = Array(process["queues"]).grep(/\Aqueue:./)
            dead = Dead.new(identity, process["pid"])
            count = queues.sum { |queue| take_over(dead, queue, blame: !process["ending"]) }
            put_back_due(dead, blame: !process["ending"])
            @config.redis do |connection|
              connection.multi do |all|
                all.call("HDEL", HeldJobs::HOLDERS, identity)
                all.call("SREM", "processes", identity)
                all.call("UNLINK", "#{identity}:work", SuspectJobs.trial(identity))
              end
            end
            @config.logger.warn { "#{identity} has died, #{count} of its jobs run again" } if count.positive?
          end

          # @param blame [Boolean] whether its jobs may have killed it
          # @return [Integer] how many jobs run again
          def take_over(dead, queue, blame:)
            jobs = call("LRANGE", HeldJobs.list(dead.identity, queue), 0, -1)
            jobs.count { |job| blame ? blame(dead, queue, job) : give_back(dead, queue, job) }
          end

          # A process pushes one due job at a time, and may have died of that. If Redis was down, there may be others,
          # which it had pushed.
          def put_back_due(dead, blame:)
            due = DueJobs.new(@config, dead.identity)
            set, job, *others = due.left.flatten
            blame_push(dead, due, set, job) if blame && job && others.empty?
            due.postpone_all
          end

          def blame_push(dead, due, set, job)
            payload = parse(job)
            id = payload["jid"] or return
            deaths = due.blame(set, job, self.class.deaths_at_push(id), DEATHS, REMEMBERED)
            again = "it is pushed again after #{DueJobs::AGAIN} s"
            tell(dead, payload["queue"].to_s, job, deaths, again) if deaths.positive?
          end

          # The job that ran alone is still a suspect.
          def give_back(dead, queue, job)
            alone = call("GET", SuspectJobs.trial(dead.identity)) == job
            call("EVAL", HeldJobs::RETURN, 2, HeldJobs.list(dead.identity, queue),
                 alone ? SuspectJobs.list(queue) : queue, job)
          end

          # @return [Object] false: the job is buried; nil: another process was faster; else it runs again
          def blame(dead, queue, job)
            id = parse(job)["jid"] or return give_back(dead, queue, job)
            list = HeldJobs.list(dead.identity, queue)
            deaths = call("EVAL", BLAME, 5, list, queue, SuspectJobs.list(queue), self.class.deaths(id), "dead",
                          job, DEATHS, SUSPECT, REMEMBERED, Time.now.to_f)
            again = deaths < SUSPECT ? "it runs again" : "it runs again, alone in its node"
            tell(dead, queue, job, deaths, again) if deaths.positive?
          end

          # A process has died with the job.
          # @param again [String] what becomes of it, unless it is buried
          # @return [Boolean] whether it runs again
          def tell(dead, queue, job, deaths, again)
            buried = deaths > DEATHS
            emit("job.killed", job, pid: dead.pid, deaths: deaths, reason: buried ? BURIED : again)
            bury(queue, job, deaths) if buried
            !buried
          end

          # The job is in the dead set already. Sidekiq limits the size of the set here, and calls the app's death
          # handlers. One that raises must not keep other jobs from being recovered.
          def bury(queue, job, deaths)
            emit("job.buried", job, queue: queue.delete_prefix("queue:"), deaths: deaths,
                                    reason: "it is in Sidekiq's dead set")
            require "sidekiq/api"
            ::Sidekiq::DeadSet.new.kill(job)
          rescue StandardError => e
            @config.handle_exception(e, { context: "Pando has buried a job that processes died with", jobstr: job })
          end

          def emit(event, job, **more)
            payload = parse(job)
            words = [payload["wrapped"] || payload["class"], payload["jid"]]
            name, id = words.map { |word| word.to_s.byteslice(0, BYTES) }
            Events.emit(event, node: @kind, name: name, id: id, **more)
          end
        end

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

          def initialize(config, held_jobs, recovery)
            @config = config
            @held_jobs = held_jobs
            @recovery = recovery
            @first_update = Mutex.new
            @lock = Mutex.new
          end

          # What the calling processor should do: fetch a job as usual, take a suspect, or wait.
          # @return [:fetch, :take, :wait]
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

          # @return [Array(String, String), nil] queue and job, which is ours now
          def take(queues)
            lists = queues.flat_map { |queue| [self.class.list(queue), @held_jobs.list(queue)] }
            index, job = call("EVAL", TAKE, 1 + lists.size, self.class.trial(@held_jobs.identity), *lists)
            return nothing_left unless job

            @job = job
            [queues[index], job]
          end

          def alone?(job) = !@job.nil? && @job == job

          # The job has ended and no process has died with it; or it was given back.
          def finish
            call("UNLINK", self.class.trial(@held_jobs.identity))
            @job = nil
          end

          # Now and then.
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
