# frozen_string_literal: true

# The config file of a chaos run; the environment contains what differs between runs.
folder = ENV.fetch("CHAOS_FOLDER")
$LOAD_PATH.unshift(ENV.fetch("CHAOS_STAGE"))
require "haste"
require "lies"

# While a file with its name exists, a hook does not return.
stuck = ->(hook) { sleep 0.02 while File.exist?(File.join(folder, "stuck", hook)) }

log_format :json
listen "unix:#{folder}/pando.sock"
listen "127.0.0.1:#{ENV.fetch("CHAOS_PORT")}"
control "#{folder}/control.sock"
workers Integer(ENV.fetch("CHAOS_WORKERS"))
threads ENV.fetch("CHAOS_THREADS")
reactor ENV.fetch("CHAOS_REACTOR") == "true"
refork after: [150, 300]
mold ENV.fetch("CHAOS_MOLD").to_sym
Haste.let_molds_go
rollout canary: { requests: 10, seconds: 0.3, longest: 2 }
timeout 8, grace: 2, streaming: 12
boot_timeout 20
spawn_timeout 3
stop_timeout 10
header_timeout 5
body_timeout 10
write_timeout 10
body_memory 32 * 1024
self_check timeout: 2
stream_bodies "/upload"
stream_bodies "/apart/upload"

before_fork do |server|
  stuck.call("before_fork")
  Lies.role = server.role
  Lies.tell_if_told(File.join(folder, "lie"))
end
after_mold_fork { stuck.call("after_mold_fork") }
after_worker_fork do |_, worker|
  stuck.call("after_worker_fork")
  Lies.role = worker
end
after_worker_ready { stuck.call("after_worker_ready") }
self_check { stuck.call("self_check") }
service(:ticker) { |service| nil until service.wait(1) }

if ENV.key?("CHAOS_APART")
  pool :apart, paths: ["/apart"], workers: Integer(ENV.fetch("CHAOS_APART")), refork: [60, 150]
end

if ENV.key?("CHAOS_NODES")
  count, *manners = ENV.fetch("CHAOS_NODES").split
  node(:jobs, count: Integer(count), concurrency: 2, timeout: 3, quiet_timeout: 5, refork: [60, 150],
              **%i[shared exclusive].to_h { |name| [name, manners.include?(name.name)] },
              require: File.join(ENV.fetch("CHAOS_STAGE"), "queue_runner.rb")) { |node| QueueRunner.new(node, folder) }
end
