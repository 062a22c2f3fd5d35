# frozen_string_literal: true

# What the monitor executes for a cold boot. It reads the same arguments as the
# monitor did, and so the same configuration, but from a clean image.

# Until the role has handlers of its own: a terminal sends these to all of us, but they are the monitor's.
%w[INT TERM QUIT HUP].each { |name| trap(name, "IGNORE") }

require "pando/cluster"

Pando::Cluster::Boot.run do |pool|
  # Not all of "pando": it loads the Railtie, and for that the application requires it once Rails is there.
  require "pando/server"
  server = Pando::Server.new(Pando::Config.load(ARGV))
  server.subscribe
  server.payload(*pool)
end
