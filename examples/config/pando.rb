# frozen_string_literal: true

# Start with: pando -c examples/config/pando.rb examples/hello.ru
# What each setting means is in docs/configuration.md.

listen "127.0.0.1:8080"
workers 4
refork after: [50, 500, false]
timeout 20, grace: 2
rollout surge: 1, unavailable: 0
max_body_bytes 100.mb
log_format(environment == "production" ? :json : :text)

after_worker_fork { |_server, worker| warn "worker #{worker.slot} is generation #{worker.generation}" }

on("worker.killed") { |event| warn "worker #{event[:slot]} was killed: #{event[:reason]}" }
