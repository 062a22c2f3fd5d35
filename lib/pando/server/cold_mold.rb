# frozen_string_literal: true

# The monitor executes this for a cold boot. It reads the same arguments, and so the same configuration, as the monitor
# did, in a clean process.

# Until the role has handlers of its own: a terminal sends these to all processes, but they are for the monitor.
%w[INT TERM QUIT HUP].each { |name| trap(name, "IGNORE") }

require "pando/cluster"

Pando::Cluster::Boot.run do |pool|
  # Not all of "pando", which loads the Railtie: the application requires that when Rails is loaded.
  require "pando/server"
  server = Pando::Server.new(Pando::Config.load(ARGV))
  server.subscribe
  server.payload(*pool)
end
