# frozen_string_literal: true

module Pando
  class Config
    # The process that holds the clients' connections, and how many it holds.
    Settings.group "Reactor" do
      setting :reactor,
              type: Types::Truth.new, default: true,
              flags: %w[--reactor], argument: "true|false",
              help: "A reactor process holds all connections; false: each worker accepts by itself (direct mode).",
              notes: "In direct mode a connection serves one request, a slow client keeps a worker busy, and the " \
                     "other settings of this group mean nothing: it is for servers behind nginx or the like.",
              example: "reactor false"

      setting :idle_timeout,
              type: Types::Seconds.new, default: 65.0, unit: "seconds",
              help: "A kept-alive connection that sends no further request for this long is closed.",
              notes: "A load balancer must give its idle connections up earlier than this, or it will send a " \
                     "request on a connection that is just being closed.",
              example: "idle_timeout 75"

      setting :queue_timeout,
              type: Types::OrOff.new(Types::Seconds.new), default: 30.0, development: nil, unit: "seconds",
              help: "A request that no worker has taken after this long is answered with 503.",
              example: "queue_timeout 5"

      setting :max_queue,
              type: Types::Whole.new(1..1024), default: 1024, unit: "requests",
              help: "Requests that may wait for a worker; one more is answered with 503 at once.",
              example: "max_queue 200"

      setting :max_connections,
              type: Types::Whole.new(1..1_000_000), default: 16_384, unit: "connections",
              help: "Connections that the reactor holds at once.",
              notes: "When there are more, the one that has been idle longest is closed; when none is idle, the " \
                     "newest is answered with 503. The hard limit of open files must allow them (`ulimit -Hn`, to " \
                     "which the reactor raises its own), and some more: each large body takes one too. Otherwise it " \
                     "holds fewer, and `reactor.limited` says how many.",
              example: "max_connections 50_000"

      setting :max_connections_per_address,
              type: Types::OrOff.new(Types::Whole.new(1..1_000_000)), default: nil, unit: "connections",
              help: "Connections that the reactor holds of one client at once; one more is answered with 503.",
              notes: "A client is an IPv4 address or an IPv6 network of 64 bits; whoever comes by a unix socket is " \
                     "not counted. Who goes on connecting beyond the limit gets no answer. Behind a proxy all " \
                     "clients have the proxy's address: set the limit there. false sets no limit.",
              example: "max_connections_per_address 100"

      setting :max_keepalive_requests,
              type: Types::OrOff.new(Types::Whole.new(1..1_000_000_000)), default: nil, unit: "requests",
              help: "Requests of one connection before it is closed; false: any number.",
              example: "max_keepalive_requests 1000"

      setting :retry_after,
              type: Types::Whole.new(1..86_400), default: 5, unit: "seconds",
              help: "What Retry-After says in the reactor's 503: how long a client should leave us alone.",
              example: "retry_after 30"

      setting :retry_requests,
              type: Types::Truth.new, default: true,
              help: "A GET, HEAD or OPTIONS whose worker died before it answered is served once more by another.",
              notes: "Not if the worker may have died of the request: by an exit, by SEGV, BUS, ABRT and the like, " \
                     "for its timeout, for want of memory, or of whatever else if a worker has died at the same " \
                     "method and path within a minute. `env[\"pando.retry\"]` is true in the second try.",
              example: "retry_requests false"
    end
  end
end
