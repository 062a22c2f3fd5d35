# frozen_string_literal: true

# What the monitor executes for a cold boot. It reads the same arguments as the
# monitor did, and so the same configuration, but from a clean image.
require "pando/cluster"

Pando::Cluster::Boot.run do
  require "pando"
  require "pando/server"
  require "pando/server/payload"
  server = Pando::Server.new(Pando::Config.load(ARGV))
  server.subscribe
  Pando::Server::Payload.new(server)
end
