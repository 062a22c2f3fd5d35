# frozen_string_literal: true

# The monitor of the stage: the server's own, with the doctor's payload. Executed by Doctor::Stage.

require "json"
require "pando"
require "pando/server"
require "pando/doctor/subject/staging"

Pando::Sys.die_with_parent! # and with the monitor all the others
begin
  server, payload = Pando::Doctor::Subject::Staging.build(ARGV)
rescue Pando::ConfigError
  exit 2 # the doctor has been told why
end
config = server.config
script = File.expand_path("cold_mold.rb", __dir__)
command = Pando::Server::Launch.mold(config)
command.command.map! { |word| word == Pando::Server::Launch::SCRIPT ? script : word }
exit Pando::Cluster::Monitor.new(payload, config.listen, Pando::Refork::Manual.new, command).prepare.run
