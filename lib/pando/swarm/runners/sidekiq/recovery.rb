# frozen_string_literal: true

require "json"
require "pando/events"
require "pando/swarm/process_identity"
require "pando/swarm/runners/sidekiq/held_jobs"
require "pando/swarm/runners/sidekiq/suspect_jobs"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Finds jobs that were held by dead processes, or by dead processors of ours, and gives them back to their
        # queues. From the second death on a job is a suspect and runs alone, see SuspectJobs. When too many processes
        # have died with it, it goes to Sidekiq's dead set instead.
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

          # One step, so that only one of several finders counts a job, and so that the job is always somewhere. KEYS:
          # the list of the dead, the queue, the suspects, the number of deaths, the dead set.
          BLAME = <<~LUA
            if redis.call("LREM", KEYS[1], 1, ARGV[1]) == 0 then return 0 end
            local deaths = redis.call("INCR", KEYS[4])
            redis.call("EXPIRE", KEYS[4], ARGV[4])
            if deaths > tonumber(ARGV[2]) then redis.call("ZADD", KEYS[5], ARGV[5], ARGV[1])
            elseif deaths >= tonumber(ARGV[3]) then redis.call("LPUSH", KEYS[3], ARGV[1])
            else redis.call("RPUSH", KEYS[2], ARGV[1]) end
            return deaths
          LUA

          # A process, or a run of one, that holds jobs and is dead, or has dead threads.
          Dead = Struct.new(:identity, :pid)
          private_constant :Dead

          def self.deaths(job_id) = "pando:sidekiq:deaths:#{job_id}"

          # @param held_jobs [HeldJobs] ours @param kind [String] the name of the node's kind
          def initialize(config, held_jobs, kind)
            @config = config
            @held_jobs = held_jobs
            @kind = kind
            @silent_since = {} # identity => since when
            @lock = Mutex.new
          end

          # Now and then.
          # @raise [RedisClient::Error]
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
            return @silent_since.delete(identity) && false if call("EXISTS", identity).positive?

            @silent_since[identity] ||= Sys.now
            Sys.now - @silent_since[identity] > GRACE
          end

          def recover_own_threads
            ours = Dead.new(@held_jobs.identity, Process.pid)
            @held_jobs.abandoned.each do |queue, job|
              blame(ours, queue, job)
              @held_jobs.forget(queue, job)
            end
          end

          def recover(identity, process)
            queues = Array(process["queues"]).grep(/\Aqueue:./)
            dead = Dead.new(identity, process["pid"])
            count = queues.sum { |queue| take_over(dead, queue, blame: !process["ending"]) }
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
          # @return [Integer] number of jobs
          def take_over(dead, queue, blame:)
            jobs = call("LRANGE", HeldJobs.list(dead.identity, queue), 0, -1)
            jobs.each { |job| blame ? blame(dead, queue, job) : give_back(dead, queue, job) }.size
          end

          # The job that ran alone is still a suspect.
          def give_back(dead, queue, job)
            alone = call("GET", SuspectJobs.trial(dead.identity)) == job
            call("EVAL", HeldJobs::RETURN, 2, HeldJobs.list(dead.identity, queue),
                 alone ? SuspectJobs.list(queue) : queue, job)
          end

          def blame(dead, queue, job)
            id = parse(job)["jid"] or return give_back(dead, queue, job)
            list = HeldJobs.list(dead.identity, queue)
            deaths = call("EVAL", BLAME, 5, list, queue, SuspectJobs.list(queue), self.class.deaths(id), "dead",
                          job, DEATHS, SUSPECT, REMEMBERED, Time.now.to_f)
            return if deaths.zero? # another process was faster

            emit("job.killed", job, pid: dead.pid, deaths: deaths, reason: outcome(deaths))
            bury(queue, job, deaths) if deaths > DEATHS
          end

          def outcome(deaths)
            return "it goes to Sidekiq's dead set" if deaths > DEATHS

            deaths < SUSPECT ? "it runs again" : "it runs again, alone in its node"
          end

          # The job is in the dead set already. Sidekiq calls the app's death handlers here and limits the size of the
          # set.
          def bury(queue, job, deaths)
            require "sidekiq/api"
            ::Sidekiq::DeadSet.new.kill(job)
            emit("job.buried", job, queue: queue.delete_prefix("queue:"), deaths: deaths,
                                    reason: "it is in Sidekiq's dead set")
          end

          def emit(event, job, **more)
            payload = parse(job)
            words = [payload["wrapped"] || payload["class"], payload["jid"]]
            name, id = words.map { |word| word.to_s.byteslice(0, BYTES) }
            Events.emit(event, node: @kind, name: name, id: id, **more)
          end
        end
      end
    end
  end
end
