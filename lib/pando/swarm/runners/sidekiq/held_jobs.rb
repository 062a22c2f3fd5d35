# frozen_string_literal: true

require "json"
require "pando/swarm/process_identity"
require "pando/swarm/runners/sidekiq/due_jobs"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # The jobs that one run of one process has taken out of their queues and not yet finished. In Redis they are in
        # lists, one per queue. A table names the process, so that others find its jobs when it is dead:
        #
        #   pando:sidekiq:holders                a hash: identity => ProcessIdentity.here as JSON
        #   pando:sidekiq:held:IDENTITY:QUEUE    a list of jobs, the newest on the left
        #
        # Used by Sidekiq's processors, and by the Heartbeat for messages that were lost in either direction.
        class HeldJobs
          HOLDERS = "pando:sidekiq:holders"
          # Seconds until a waiting caller asks Redis again.
          AGAIN = 0.2

          # Gives a job back, if it is still held. Returns nil if not.
          RETURN = <<~LUA
            if redis.call("LREM", KEYS[1], 1, ARGV[1]) == 1 then return redis.call("RPUSH", KEYS[2], ARGV[1]) end
          LUA

          class << self
            # @return [HeldJobs, nil] nil: Sidekiq itself fetches
            attr_accessor :current

            def list(identity, queue) = "pando:sidekiq:held:#{identity}:#{queue.delete_prefix("queue:")}"
          end

          # @return [DueJobs] of the same run
          attr_reader :due_jobs
          attr_reader :identity, :queues
          attr_accessor :suspects

          # @param config [Sidekiq::Config] @param identity [String] Sidekiq's name for this run
          def initialize(config, identity)
            @config = config
            @identity = identity
            @due_jobs = DueJobs.new(config, identity)
            @queues = config.capsules.each_value.flat_map(&:queues).uniq.map { |name| "queue:#{name}" }
            @lock = Mutex.new
            @held = {} # [queue, job] => the processor's thread
            @unreported = {} # [queue, job] => what Redis does not know yet: :acknowledge, :give_back
            @fetches = {} # Thread => when it queried Redis
            @ending = false
            @lost_replies = {} # [queue, job] => when it was seen in our list without a processor
          end

          def list(queue) = self.class.list(identity, queue)

          # Call it before anything is held.
          def ensure_registered
            register unless @registered
          end

          # @yieldreturn [Array(String, String), nil] queue and job, moved to our list
          def fetch
            ensure_registered
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
          def ending
            @ending = true
            register
          end

          # Now and then.
          def maintain
            register
            unreported.each { |held, outcome| report(held, outcome) }
            return_lost_replies
          end

          def unsettled? = @lock.synchronize { @unreported.any? || @lost_replies.any? }

          # Jobs that are neither done nor given back and whose processor has ended. The job did not simply raise:
          # Sidekiq deals with that.
          # @return [Array<(String, String)>] queues and jobs
          def abandoned
            @lock.synchronize do
              @held.filter_map do |held, thread|
                held unless thread.alive? || @unreported.key?(held)
              end
            end
          end

          # The job of an ended processor is in its queue again, or buried. Another processor may have it by now.
          def forget(queue, job)
            @lock.synchronize { @held.delete([queue, job]) unless @held[[queue, job]]&.alive? }
          end

          # The job does not run alone any more.
          def end_trial(job) = (suspects.finish if suspects.alone?(job))

          # @return [:jobs, :fetches, nil] what our other processors are doing; nil: nothing
          def activity_beside(thread)
            @lock.synchronize do
              next :jobs if @held.any? { |_, other| other != thread && other.alive? }

              :fetches if @fetches.any? { |other, _| other != thread && other.alive? }
            end
          end

          # Call it when neither a processor nor the scheduler is left: gives all held jobs back, but first reports the
          # finished ones, so that they do not run again.
          # @param patience [Float] seconds to keep trying if Redis is down
          # @return [Boolean] whether Redis knows everything now
          def release(patience)
            deadline = Sys.now + patience
            begin
              unreported.each { |held, outcome| report(held, outcome) }
              give_all_back
              true
            rescue StandardError => e
              return log_failure(e) if Sys.now >= deadline

              sleep(AGAIN)
              retry
            end
          end

          private

          def unreported = @lock.synchronize { @unreported.to_a }

          def give_all_back
            @due_jobs.put_back
            @config.redis do |redis|
              @queues.each { |queue| jobs(queue).each { |job| report([queue, job], :give_back) } }
              redis.call("HDEL", HOLDERS, identity)
            end
          end

          def log_failure(error)
            @config.logger.warn { "could not tell Redis which jobs are done or given back: #{error.message}" }
            false
          end

          # Called again now and then, in case Redis has lost the entry.
          def register
            where = JSON.generate(ProcessIdentity.here.merge("queues" => @queues, "ending" => @ending))
            @config.redis { |redis| redis.call("HSET", HOLDERS, identity, where) }
            @registered = true
          end

          # The job has run, so its processor must not fail. If the outcome cannot be reported now (Redis is down, no
          # connection is free, or the processor is interrupted), it is reported later.
          def settle(held, outcome)
            reported = false
            report(held, outcome)
            reported = true
          rescue StandardError
            reported
          ensure
            @lock.synchronize { @unreported[held] = outcome } unless reported
          end

          # Reporting twice does no harm. One of our own processors may take a returned job at once: so forget the
          # job before giving it back, not afterwards.
          def report(held, outcome)
            queue, job = held
            @lock.synchronize { @held.delete(held) } if outcome == :give_back
            @config.redis do |redis|
              if outcome == :acknowledge
                redis.call("LREM", list(queue), 1, job)
                forget_deaths(redis, job) if suspects.alone?(job)
              else
                redis.call("EVAL", RETURN, 2, list(queue), suspects.alone?(job) ? SuspectJobs.list(queue) : queue, job)
              end
            end
            end_trial(job)
            @lock.synchronize do
              @held.delete(held) if outcome == :acknowledge
              @unreported.delete(held) if @unreported[held] == outcome
            end
          end

          # The job has run alone, and no process has died with it.
          def forget_deaths(redis, job)
            id = JSON.parse(job)["jid"]
            redis.call("DEL", Recovery.deaths(id)) if id
          end

          # Gives back jobs that we never received: Redis moved them, and the reply was lost with the connection. No
          # processor has such a job once every fetch that was under way when we first saw it has ended.
          def return_lost_replies
            listed = @queues.flat_map { |queue| jobs(queue).map { |job| [queue, job] } }
            seen = Sys.now # not before: a fetch in between may still bring one of them
            asking_since = nil
            @lock.synchronize do
              listed.reject! { |held| known?(held) }
              asking_since = @fetches.values.min || seen
            end
            sure, @lost_replies = listed.to_h { |held| [held, @lost_replies[held] || seen] }
                                        .partition { |_, first| first < asking_since }.map(&:to_h)
            sure.each_key { |held| report(held, :give_back) }
          end

          def known?(held) = @held.key?(held) || @unreported.key?(held)
          def jobs(queue) = @config.redis { |redis| redis.call("LRANGE", list(queue), 0, -1) }
        end

        # Runs of this process that ended while Redis was down, so it does not know the outcome of their jobs. A node
        # that was forked in between goes on with another run. No other process knows which of those jobs are done, so
        # the Heartbeat of the next run reports it first of all.
        #
        # A child has none: the list that it inherits belongs to its parent, which is alive and reports by itself.
        module UnreportedRuns
          class << self
            def add(held_jobs)
              ours << held_jobs
            end

            # @return [Boolean] whether we must still report the outcome of its jobs
            def include?(identity) = ours.any? { |held_jobs| held_jobs.identity == identity }

            # Tries to report once more.
            def release = ours.reject! { |held_jobs| held_jobs.release(0) }

            private

            def ours
              unless @pid == Process.pid
                @pid = Process.pid
                @ours = []
              end
              @ours
            end
          end
        end
      end
    end
  end
end
