# frozen_string_literal: true

require "json"
require "pando/swarm/runners/sidekiq/whereabouts"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # The jobs that one run of one process has taken out of their queues and not yet finished. In Redis they are in
        # lists, one per queue. A table names the process, so that others find its jobs when it is dead:
        #
        #   pando:sidekiq:holders                a hash: identity => Whereabouts as JSON
        #   pando:sidekiq:held:IDENTITY:QUEUE    a list of jobs, the newest on the left
        #
        # Used by Sidekiq's processors, and by the Beat for messages that were lost in either direction.
        class Holdings
          HOLDERS = "pando:sidekiq:holders"
          # Seconds until a waiting caller asks Redis again.
          AGAIN = 0.2

          # Gives a job back, if it is still held.
          RETURN = <<~LUA
            if redis.call("LREM", KEYS[1], 1, ARGV[1]) == 1 then redis.call("RPUSH", KEYS[2], ARGV[1]) end
          LUA

          class << self
            # @return [Holdings, nil] nil: Sidekiq itself fetches
            attr_accessor :current

            def list(identity, queue) = "pando:sidekiq:held:#{identity}:#{queue.delete_prefix("queue:")}"
          end

          attr_reader :identity, :queues
          # @return [Trials]
          attr_accessor :trials

          # @param config [Sidekiq::Config] @param identity [String] Sidekiq's name for this run
          def initialize(config, identity)
            @config = config
            @identity = identity
            @queues = config.capsules.each_value.flat_map(&:queues).uniq.map { |name| "queue:#{name}" }
            @lock = Mutex.new
            @held = {} # [queue, job] => the processor's thread
            @owed = {} # [queue, job] => what Redis does not know yet: :acknowledge, :give_back
            @fetches = {} # Thread => when it queried Redis
            @ending = false
            @strays = {} # [queue, job] => when it was seen in our list without a processor
          end

          def list(queue) = self.class.list(identity, queue)

          # @yieldreturn [Array(String, String), nil] queue and job, moved to our list
          def fetch
            enlist unless @enlisted
            @lock.synchronize { @fetches[Thread.current] = Sys.now }
            found = yield
          ensure
            @lock.synchronize do
              @held[found] = Thread.current if found
              @fetches.delete(Thread.current)
            end
          end

          def acknowledge(queue, job) = settle([queue, job], :acknowledge)
          def give_back(queue, job) = settle([queue, job], :give_back)

          # Jobs are interrupted from now on. A process that finds this one dead must know that these jobs did not kill
          # it.
          # @raise [RedisClient::Error]
          def ending
            @ending = true
            enlist
          end

          # Now and then.
          # @raise [RedisClient::Error]
          def tend
            enlist
            owed.each { |held, manner| tell(held, manner) }
            return_strays
          end

          def unsettled? = @lock.synchronize { @owed.any? || @strays.any? }

          # Jobs that are neither done nor given back and whose processor has ended. The job did not simply raise:
          # Sidekiq deals with that.
          # @return [Array<(String, String)>] queues and jobs
          def abandoned
            @lock.synchronize { @held.filter_map { |held, thread| held unless thread.alive? || @owed.key?(held) } }
          end

          # The job is not ours any more.
          def forget(queue, job)
            trials.over if trials.trial?(job)
            @lock.synchronize { @held.delete([queue, job]) }
          end

          # @param thread [Thread] a processor's thread
          # @return [:jobs, :fetches, nil] what our other processors are doing; nil: nothing
          def others_at(thread)
            @lock.synchronize do
              next :jobs if @held.any? { |_, other| other != thread && other.alive? }

              :fetches if @fetches.any? { |other, _| other != thread && other.alive? }
            end
          end

          # Call it when no processor is left: gives all held jobs back, but first reports the finished ones, so that
          # they do not run again.
          # @param patience [Float] seconds to keep trying if Redis is down
          # @return [Boolean] whether Redis knows everything now
          def release(patience)
            deadline = Sys.now + patience
            begin
              owed.each { |held, manner| tell(held, manner) }
              give_all_back
              true
            rescue StandardError => e
              return put_off(e) if Sys.now >= deadline

              sleep(AGAIN)
              retry
            end
          end

          private

          def owed = @lock.synchronize { @owed.to_a }

          def give_all_back
            @config.redis do |redis|
              @queues.each { |queue| jobs(queue).each { |job| tell([queue, job], :give_back) } }
              redis.call("HDEL", HOLDERS, identity)
            end
          end

          def put_off(error)
            @config.logger.warn { "could not tell Redis which jobs are done or given back: #{error.message}" }
            false
          end

          # Called before anything is held, and again in case Redis has lost the entry.
          def enlist
            where = JSON.generate(Whereabouts.here.merge("queues" => @queues, "ending" => @ending))
            @config.redis { |redis| redis.call("HSET", HOLDERS, identity, where) }
            @enlisted = true
          end

          # The job has run, so its processor must not fail. If Redis cannot be told now (it is down, no connection is
          # free, or the processor is interrupted), it is told later.
          def settle(held, manner)
            told = false
            tell(held, manner)
            told = true
          rescue StandardError
            told
          ensure
            @lock.synchronize { @owed[held] = manner } unless told
          end

          # Telling Redis twice does no harm. One of our own processors may take a returned job at once: so forget the
          # job before giving it back, not afterwards.
          def tell(held, manner)
            queue, job = held
            @lock.synchronize { @held.delete(held) } if manner == :give_back
            @config.redis do |redis|
              if manner == :acknowledge
                redis.call("LREM", list(queue), 1, job)
                absolve(redis, job) if trials.trial?(job)
              else
                redis.call("EVAL", RETURN, 2, list(queue), trials.trial?(job) ? Trials.list(queue) : queue, job)
              end
            end
            trials.over if trials.trial?(job)
            @lock.synchronize do
              @held.delete(held) if manner == :acknowledge
              @owed.delete(held) if @owed[held] == manner
            end
          end

          # The job has run alone, and no process has died with it.
          def absolve(redis, job)
            id = JSON.parse(job)["jid"]
            redis.call("DEL", Recovery.deaths(id)) if id
          end

          # Gives back jobs that we never received: Redis moved them, and the reply was lost with the connection. No
          # processor has such a job once every fetch that was under way when we first saw it has ended.
          def return_strays
            listed = @queues.flat_map { |queue| jobs(queue).map { |job| [queue, job] } }
            seen = Sys.now # not before: a fetch in between may still bring one of them
            asking_since = nil
            @lock.synchronize do
              listed.reject! { |held| known?(held) }
              asking_since = @fetches.values.min || seen
            end
            sure, @strays = listed.to_h { |held| [held, @strays[held] || seen] }
                                  .partition { |_, first| first < asking_since }.map(&:to_h)
            sure.each_key { |held| tell(held, :give_back) }
          end

          def known?(held) = @held.key?(held) || @owed.key?(held)
          def jobs(queue) = @config.redis { |redis| redis.call("LRANGE", list(queue), 0, -1) }
        end
      end
    end
  end
end
