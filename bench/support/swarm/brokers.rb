# frozen_string_literal: true

require "support/redis_server"

module Bench
  module Swarm
    # The job brokers. Each run has its own server.
    module Brokers
      # Redis, for Sidekiq.
      class Redis
        def initialize(folder, jobs, _lanes)
          @server = Support::RedisServer.new(folder).start
          @jobs = jobs
        end

        def environment = { "REDIS_URL" => @server.url, "LAB_JOBS" => "sidekiq" }

        # @param count [Integer] of the next jobs
        def give(count) = @server.call("LPUSH", "queue:default", *@jobs.take(count).map(&:to_sidekiq))

        # @param _unknown [Integer] jobs that were sent and not reported as done yet
        # @return [Integer] jobs that have not been started
        def waiting(_unknown) = @server.call("LLEN", "queue:default")

        def stop = @server.stop
      end

      # librdkafka's mock of Kafka. A message's partition and number identify its job (Jobs::Table).
      class Kafka
        TOPIC = "jobs"

        # @param lanes [Integer] partitions
        def initialize(folder, jobs, lanes)
          @folder = folder
          require "support/kafka_broker"
          @lanes = lanes
          @jobs = jobs
          @number = 0
          @server = Support::KafkaBroker.new.start
          @server.topic(TOPIC, lanes)
        end

        def environment
          { "KAFKA" => @server.addresses, "SWARM_SEED" => @jobs.seed.to_s, "SWARM_LANES" => @lanes.to_s,
            "KARAFKA_ROOT_DIR" => @folder, "KARAFKA_BOOT_FILE" => File.join(__dir__, "karafka.rb") }
        end

        # Every partition gets the same number of messages, so the remainder of a count that is not a multiple of them
        # is left out.
        def give(count)
          @server.produce(TOPIC, @number, each = count / @lanes)
          @number += each
        end

        def waiting(unknown) = unknown
        def stop = @server.stop
      end
    end
  end
end
