# frozen_string_literal: true

require "json"
require "pando/events"
require "pando/swarm/runners/sidekiq/former_runs"
require "pando/swarm/runners/sidekiq/holdings"
require "pando/swarm/runners/sidekiq/trials"
require "pando/swarm/runners/sidekiq/whereabouts"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Finds jobs that were held by dead processes, or by dead processors of ours, and gives them back to their
        # queues. From the second death on a job is a suspect and runs alone, see Trials. When too many processes have
        # died with it, it goes to Sidekiq's dead set instead.
        #
        # Runs on the Beat's thread of each node, and once on that of its first processor.
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

          # @param holdings [Holdings] ours @param kind [String] the name of the node's kind
          def initialize(config, holdings, kind)
            @config = config
            @holdings = holdings
            @kind = kind
            @silent = {} # identity => since when
            @lock = Mutex.new
          end

          # Now and then.
          # @raise [RedisClient::Error]
          def tend
            @lock.synchronize do
              bury_threads
              others = redis.call("HGETALL", Holdings::HOLDERS).except(@holdings.identity)
              @silent.keep_if { |identity, _| others.key?(identity) }
              others.each do |identity, text|
                where = parse(text)
                recover(identity, where) if dead?(identity, where)
              end
            end
          rescue ::Sidekiq::RedisClientAdapter::BaseError
            @silent.clear
            raise
          end

          private

          def redis = Caller.new(@config)

          # Calls Redis on a connection of the pool.
          Caller = Struct.new(:config) do
            def call(*command) = config.redis { |connection| connection.call(*command) }
          end
          private_constant :Caller

          def parse(text)
            where = JSON.parse(text)
            where.is_a?(Hash) ? where : {}
          rescue JSON::ParserError
            {}
          end

          # A former run in this process has ended too, and has said so, unless Redis was down.
          def dead?(identity, where)
            case Whereabouts.state(where)
            when :dead then true
            when :alive then where["pid"] == Process.pid && !FormerRuns.include?(identity)
            else silent?(identity)
            end
          end

          # Sidekiq's heartbeat keeps a key of this name for a minute.
          def silent?(identity)
            return @silent.delete(identity) && false if redis.call("EXISTS", identity).positive?

            @silent[identity] ||= Sys.now
            Sys.now - @silent[identity] > GRACE
          end

          def bury_threads
            ours = Dead.new(@holdings.identity, Process.pid)
            @holdings.abandoned.each do |queue, job|
              blame(ours, queue, job)
              @holdings.forget(queue, job)
            end
          end

          def recover(identity, where)
            queues = Array(where["queues"]).grep(/\Aqueue:./)
            dead = Dead.new(identity, where["pid"])
            count = queues.sum { |queue| take_over(dead, queue, blame: !where["ending"]) }
            @config.redis do |connection|
              connection.multi do |all|
                all.call("HDEL", Holdings::HOLDERS, identity)
                all.call("SREM", "processes", identity)
                all.call("UNLINK", "#{identity}:work", Trials.trial(identity))
              end
            end
            @config.logger.warn { "#{identity} has died, #{count} of its jobs run again" } if count.positive?
          end

          # @param blame [Boolean] whether its jobs may have killed it
          # @return [Integer] number of jobs
          def take_over(dead, queue, blame:)
            jobs = redis.call("LRANGE", Holdings.list(dead.identity, queue), 0, -1)
            jobs.each { |job| blame ? blame(dead, queue, job) : give_back(dead, queue, job) }.size
          end

          # The job that ran alone is still a suspect.
          def give_back(dead, queue, job)
            alone = redis.call("GET", Trials.trial(dead.identity)) == job
            redis.call("EVAL", Holdings::RETURN, 2, Holdings.list(dead.identity, queue),
                       alone ? Trials.list(queue) : queue, job)
          end

          def blame(dead, queue, job)
            id = parse(job)["jid"] or return give_back(dead, queue, job)
            list = Holdings.list(dead.identity, queue)
            deaths = redis.call("EVAL", BLAME, 5, list, queue, Trials.list(queue), self.class.deaths(id), "dead",
                                job, DEATHS, SUSPECT, REMEMBERED, Time.now.to_f)
            return if deaths.zero? # another process was faster

            tell("job.killed", job, pid: dead.pid, deaths: deaths, reason: outcome(deaths))
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
            tell("job.buried", job, queue: queue.delete_prefix("queue:"), deaths: deaths,
                                    reason: "it is in Sidekiq's dead set")
          end

          def tell(event, job, **more)
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
