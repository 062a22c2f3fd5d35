# frozen_string_literal: true

require "json"
require "pando/swarm/runners/sidekiq/former_runs"
require "pando/swarm/runners/sidekiq/holdings"
require "pando/swarm/runners/sidekiq/whereabouts"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Finds jobs that dead processes held, and dead processors of ours, and gives them back to their queues; a job
        # with which one after another has died goes to Sidekiq's dead set instead.
        #
        # On the Beat's thread of each node.
        class Recovery
          # How many may die with a job before it is thought to be the reason, within so many seconds.
          DEATHS = 3
          REMEMBERED = 3 * 24 * 3600
          # Seconds that a process elsewhere has to show a sign of life, after its heartbeat in Redis has expired: all
          # have when Redis was away.
          GRACE = 30

          # @param holdings [Holdings] ours
          def initialize(config, holdings)
            @config = config
            @holdings = holdings
            @silent = {} # identity => since when
          end

          # Now and then.
          # @raise [RedisClient::Error]
          def tend
            @holdings.abandoned.each { |queue, job| run_again(queue, job) }
            others = redis.call("HGETALL", Holdings::HOLDERS).except(@holdings.identity)
            @silent.keep_if { |identity, _| others.key?(identity) }
            others.each do |identity, text|
              where = parse(text)
              recover(identity, where) if dead?(identity, where)
            end
          rescue ::Sidekiq::RedisClientAdapter::BaseError
            @silent.clear
            raise
          end

          private

          def redis = Caller.new(@config)

          # Calls Redis by a connection of the pool.
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

          # A former run in this process has ended too, and has said so, unless Redis was away.
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

          def recover(identity, where)
            queues = Array(where["queues"]).grep(/\Aqueue:./)
            @holdings.answer_for(queues)
            count = queues.sum { |queue| take_over(identity, queue, blame: !where["ending"]) }
            @config.redis do |connection|
              connection.multi do |all|
                all.call("HDEL", Holdings::HOLDERS, identity)
                all.call("SREM", "processes", identity)
                all.call("UNLINK", "#{identity}:work")
              end
            end
            @config.logger.warn { "#{identity} has died, #{count} of its jobs are run again" } if count.positive?
          end

          # By way of our own list: whatever happens to us, somebody has it.
          # @param blame [Boolean] whether its jobs may be what it died of
          # @return [Integer] jobs
          def take_over(identity, queue, blame:)
            from = Holdings.list(identity, queue)
            0.step do |count|
              job = redis.call("LMOVE", from, @holdings.list(queue), "LEFT", "LEFT") or return count
              blame ? run_again(queue, job) : @holdings.give_back(queue, job)
            end
          end

          # @param job [String] in our own list
          def run_again(queue, job)
            return @holdings.give_back(queue, job) unless deadly?(job)

            require "sidekiq/api"
            ::Sidekiq::DeadSet.new.kill(job)
            @holdings.acknowledge(queue, job)
            @config.logger.error do
              "a job with which #{DEATHS + 1} processes or threads have died is in the dead set: #{job}"
            end
          end

          # @return [Boolean] one too many has died with it
          def deadly?(job)
            id = parse(job)["jid"] or return false
            key = "pando:sidekiq:deaths:#{id}"
            deaths = redis.call("INCR", key)
            redis.call("EXPIRE", key, REMEMBERED)
            deaths > DEATHS
          end
        end
      end
    end
  end
end
