# frozen_string_literal: true

# Loaded by each contestant before it forks: the app, and the meter around its jobs.
require_relative "meter"
require "io/wait"
require "sidekiq"

Bench::Swarm::Meter.begin(ENV.fetch("SWARM_PIPE"))
Sidekiq.configure_server do |config|
  config.server_middleware { |chain| chain.add(Bench::Swarm::Meter::Middleware) }
  config.logger.level = Logger::WARN
end
require File.join(ENV.fetch("SWARM_APP"), "config/environment")
