# frozen_string_literal: true

# The program of the stage's monitor: the server's own, with the doctor's payload. Doctor::Stage executes it.

require "pando"
require "pando/doctor/subject/payload"

Pando::Sys.die_with_parent! # and the monitor's children die with the monitor
begin
  payload = Pando::Doctor::Subject::Payload.build(ARGV)
rescue Pando::ConfigError
  exit 2 # the doctor has been told why
end
config = payload.config
script = File.expand_path("cold_mold.rb", __dir__)
begin
  command = Pando::Server::Launch.mold(config)
  command.command.map! { |word| word == Pando::Server::Launch::SCRIPT ? script : word }
  monitor = Pando::Cluster::Monitor.new(payload, config.listen, Pando::Refork::Manual.new, command).prepare
rescue Pando::BootError => e
  payload.wire.tell(refused: e.message)
  exit 1
end
exit monitor.run
