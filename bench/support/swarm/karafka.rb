# frozen_string_literal: true

# Loaded by Karafka's swarm and by Pando's Karafka nodes before they fork: the app, and a consumer whose messages are
# the jobs.
$LOAD_PATH.unshift(File.expand_path("../..", __dir__))
require "io/wait"
require "karafka"
require "support/swarm/jobs"
require "support/swarm/meter"

Bench::Swarm::Meter.begin(ENV.fetch("SWARM_PIPE"))
require File.join(ENV.fetch("SWARM_APP"), "config/environment")

# Runs one job per message.
class JobsConsumer < Karafka::BaseConsumer
  LANES = Integer(ENV.fetch("SWARM_LANES"))
  TABLE = Bench::Swarm::Jobs::Table.new(Integer(ENV.fetch("SWARM_SEED")), 50_000)

  def consume
    messages.each do |message|
      job = TABLE.at((Integer(message.raw_payload) * LANES) + message.partition)
      Bench::Swarm::Meter.instance.measure(job.place) { ActiveJob::Base.execute(job.to_active) }
      mark_as_consumed(message)
    end
  end
end

# The routes.
class JobsApp < Karafka::App # rubocop:disable Style/OneClassPerFile -- as in every karafka.rb
  setup do |config|
    config.client_id = "swarm"
    config.group_id = "swarm"
    config.concurrency = Integer(ENV.fetch("SWARM_THREADS"))
    config.swarm.nodes = Integer(ENV.fetch("SWARM_NODES"))
    config.max_wait_time = 100
    config.kafka = { "bootstrap.servers": ENV.fetch("KAFKA"), "session.timeout.ms": 6000,
                     "heartbeat.interval.ms": 500, "auto.offset.reset": "earliest" }
    config.logger = Logger.new($stderr, level: "WARN")
  end

  routes.draw do
    topic(:jobs) { consumer JobsConsumer }
  end
end

Karafka.monitor.subscribe("swarm.node.after_fork") { Process.setproctitle("karafka swarm node") }
