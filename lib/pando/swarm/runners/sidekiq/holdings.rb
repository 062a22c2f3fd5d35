# frozen_string_literal: true

require "json"
require "pando/swarm/runners/sidekiq/whereabouts"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # The jobs that one run of one process has taken out of their queues and not yet finished. In Redis they are in
        # lists, one for each queue, and the process is named in a table, so that others find them when it is dead:
        #
        #   pando:sidekiq:holders                a hash: identity => Whereabouts as JSON
        #   pando:sidekiq:held:IDENTITY:QUEUE    a list of jobs, the newest on the left
        #
        # Used by Sidekiq's processors, and by the Beat for what Redis did not hear or we did not.
        class Holdings
          HOLDERS = "pando:sidekiq:holders"
          # Seconds until Redis is asked once more by who waits for it.
          AGAIN = 0.2

          # Gives a job back if it is still held.
          RETURN = <<~LUA
            if redis.call("LREM", KEYS[1], 1, ARGV[1]) == 1 then redis.call("RPUSH", KEYS[2], ARGV[1]) end
          LUA

          class << self
            # @return [Holdings, nil] nil: fetching is left to Sidekiq
            attr_accessor :current

            def list(identity, queue) = "pando:sidekiq:held:#{identity}:#{queue.delete_prefix("queue:")}"
          end

          attr_reader :identity, :queues
          # @return [Trials]
          attr_accessor :trials

          # @param config [Sidekiq::Config] @param identity [String] how Sidekiq calls this run
          def initialize(config, identity)
            @config = config
            @identity = identity
            @queues = config.capsules.each_value.flat_map(&:queues).uniq.map { |name| "queue:#{name}" }
            @lock = Mutex.new
            @held = {} # [queue, job] => the processor's thread
            @owed = {} # [queue, job] => what Redis is yet to be told of it: :acknowledge, :give_back
            @fetches = {} # Thread => when it asked Redis
            @ending = false
            @strays = {} # [queue, job] => when it was seen in our list, and with nobody who does it
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

          # From now on jobs are interrupted: who finds us dead is to know that it was not they who killed us.
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

          # Neither done nor given back, and the processor has ended: whatever went wrong there was not the job's own
          # error, which Sidekiq deals with.
          # @return [Array<(String, String)>] queues and jobs
          def abandoned
            @lock.synchronize { @held.filter_map { |held, thread| held unless thread.alive? || @owed.key?(held) } }
          end

          # It is not ours any more.
          def forget(queue, job)
            trials.over if trials.trial?(job)
            @lock.synchronize { @held.delete([queue, job]) }
          end

          # @param thread [Thread] a processor's
          # @return [:jobs, :fetches, nil] what others of ours are at, nil: nothing
          def others_at(thread)
            @lock.synchronize do
              next :jobs if @held.any? { |_, other| other != thread && other.alive? }

              :fetches if @fetches.any? { |other, _| other != thread && other.alive? }
            end
          end

          # When no processor is left: whatever is held goes back, what has run first of all does not.
          # @param patience [Float] seconds to try again if Redis does not hear it
          # @return [Boolean] whether it has heard it
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
            @config.logger.warn { "Redis does not hear which jobs are done or given back: #{error.message}" }
            false
          end

          # Before anything is held, and again lest Redis has forgotten it.
          def enlist
            where = JSON.generate(Whereabouts.here.merge("queues" => @queues, "ending" => @ending))
            @config.redis { |redis| redis.call("HSET", HOLDERS, identity, where) }
            @enlisted = true
          end

          # The job has run, so its processor must not fail: what Redis does not hear now it will be told later, be it
          # that Redis is away, that no connection was free or that the processor is interrupted.
          def settle(held, manner)
            told = false
            tell(held, manner)
            told = true
          rescue StandardError
            told
          ensure
            @lock.synchronize { @owed[held] = manner } unless told
          end

          # Told twice does no harm. What has gone back one of our own processors may hold again at once: so it is
          # forgotten before, not afterwards.
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

          # It has run alone, and nobody has died of it.
          def absolve(redis, job)
            id = JSON.parse(job)["jid"]
            redis.call("DEL", Recovery.deaths(id)) if id
          end

          # A job whose arrival we never heard of: Redis moved it, and the answer was lost with the connection. Nobody
          # does it once all who were asking when it was first seen have got an answer or none.
          def return_strays
            listed = @queues.flat_map { |queue| jobs(queue).map { |job| [queue, job] } }
            seen = Sys.now # not before: who asked in between may be on its way to us with one of them
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
