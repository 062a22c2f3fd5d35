# frozen_string_literal: true

require "fileutils"
require "json"
require "logger"
require "tmpdir"
require "pando/swarm/runners/sidekiq/recovery"
require "support/redis_server"

module Sidekiq
  class RedisClientAdapter
    class BaseError < StandardError; end
  end

  # As much of Sidekiq's API.
  class DeadSet
    def kill(_job); end
  end
end
$LOADED_FEATURES << "sidekiq/api.rb"

module Support
  # Runs of processes that hold jobs. Redis is real; of Sidekiq's configuration it takes no more than the way to it.
  module SidekiqRedis
    Capsule = Struct.new(:queues)
    HeldJobs = Pando::Swarm::Runners::Sidekiq::HeldJobs
    Recovery = Pando::Swarm::Runners::Sidekiq::Recovery
    SuspectJobs = Pando::Swarm::Runners::Sidekiq::SuspectJobs
    ProcessIdentity = Pando::Swarm::ProcessIdentity

    # As much of Sidekiq::Config.
    Config = Struct.new(:server) do
      def capsules = { "default" => Capsule.new(%w[default low]) }
      # So many times it is not there.
      attr_writer :away

      def redis
        @away = @away.to_i - 1
        raise(@error ||= RuntimeError.new("no free connection")) if @away >= 0

        yield(self)
      end

      def multi = yield(self)

      def pipelined
        answers = []
        yield(Struct.new(:ask) { def call(*words) = ask.call(*words) }.new(->(*words) { answers << call(*words) }))
        answers
      end

      # Called once, when a script has run.
      attr_writer :afterwards

      # By the newer protocol, as Sidekiq's client speaks, the first one answers with a Hash.
      def call(name, *words)
        answer = server.call(name, *words)
        name == "EVAL" && @afterwards&.tap { @afterwards = nil }&.call
        name == "HGETALL" ? answer.each_slice(2).to_h : answer
      end

      def logger = @logger ||= Logger.new(IO::NULL)

      # What Sidekiq's error handlers would be told.
      def errors = @errors ||= []
      def handle_exception(error, _context) = errors << error
    end

    def setup
      skip Support::RedisServer.obstacle if Support::RedisServer.obstacle

      @folder = Dir.mktmpdir("pando-recovery")
      @redis = Support::RedisServer.new(@folder).start
      @config = Config.new(@redis)
      @held_jobs = held_jobs_of("us")
      @recovery = Recovery.new(@config, @held_jobs, "jobs")
    end

    def teardown
      @redis&.stop
      FileUtils.rm_rf(@folder) if @folder
    end

    private

    # @return [HeldJobs]
    def held_jobs_of(identity)
      HeldJobs.new(@config, identity).tap do |held_jobs|
        held_jobs.suspects = SuspectJobs.new(@config, held_jobs, Recovery.new(@config, held_jobs, "jobs"))
      end
    end

    # @return [Hash] the identity of a process that has ended
    def dead = ProcessIdentity.here.merge("pid" => Process.wait(fork { exit!(0) }))

    # One with a job that is called as it is.
    def holder(identity, where)
      @redis.call("HSET", HeldJobs::HOLDERS, identity, JSON.generate(where.merge("queues" => ["queue:default"])))
      @redis.call("LPUSH", HeldJobs.list(identity, "default"), identity)
    end
  end
end
