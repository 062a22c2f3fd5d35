# frozen_string_literal: true

module Pando
  class Config
    # The process that holds the clients' connections, and its limits.
    Settings.group "Reactor" do
      setting :reactor,
              type: Types::Truth.new, default: true,
              flags: %w[--reactor], argument: "true|false",
              help: "Whether a reactor process holds all connections. false: workers accept their own (direct mode).",
              notes: <<~MARKDOWN,
                In direct mode each connection serves one request, and a slow client keeps a worker busy. The other
                settings of this group have no effect. Use direct mode only behind nginx or a similar proxy.
              MARKDOWN
              example: "reactor false"

      setting :idle_timeout,
              type: Types::Seconds.new, default: 65.0, unit: "seconds",
              help: "Close a keep-alive connection that sends no further request for this long.",
              notes: <<~MARKDOWN,
                The idle timeout of your load balancer must be shorter than this. Otherwise it may send a request on a
                connection that Pando is just closing.
              MARKDOWN
              example: "idle_timeout 75"

      setting :queue_timeout,
              type: Types::OrOff.new(Types::Seconds.new), default: 30.0, development: nil, unit: "seconds",
              help: "How long a request may wait for a worker. After that it gets 503.",
              example: "queue_timeout 5"

      setting :max_queue,
              type: Types::Whole.new(1..100_000), default: 1024, unit: "requests",
              help: "How many requests may wait for a worker. With one more, a request gets 503 at once.",
              notes: "If one client has most of the waiting requests, its newest request gets the 503.",
              example: "max_queue 200"

      setting :max_connections,
              type: Types::Whole.new(1..1_000_000), default: 16_384, unit: "connections",
              help: "How many connections the reactor holds at once.",
              notes: <<~MARKDOWN,
                With one more, the reactor closes the connection that has been idle longest. If none is idle, the newest
                one gets 503.

                The reactor raises its own limit of open files to the hard limit (`ulimit -Hn`). That must be higher
                than this setting, because each large body takes a file descriptor too. If it is too low, the reactor
                holds fewer connections, and the event `reactor.limited` says how many.
              MARKDOWN
              example: "max_connections 50_000"

      setting :max_connections_per_address,
              type: Types::OrOff.new(Types::Whole.new(1..1_000_000)), default: nil, unit: "connections",
              help: "How many connections one client may have at once. One more gets 503. false: no limit.",
              notes: <<~MARKDOWN,
                A client is an IPv4 address, or an IPv6 network of 64 bits. Connections through a unix socket do not
                count. If a client keeps connecting far beyond the limit, the reactor closes its connections without an
                answer. Behind a proxy all clients have the proxy's address: set a limit in the proxy instead.
              MARKDOWN
              example: "max_connections_per_address 100"

      setting :max_keepalive_requests,
              type: Types::OrOff.new(Types::Whole.new(1..1_000_000_000)), default: nil, unit: "requests",
              help: "How many requests a connection may send before Pando closes it. false: no limit.",
              example: "max_keepalive_requests 1000"

      setting :retry_after,
              type: Types::Whole.new(1..86_400), default: 5, unit: "seconds",
              help: "The Retry-After header of the reactor's 503: how long a client should wait before it tries again.",
              example: "retry_after 30"

      setting :retry_requests,
              type: Types::Truth.new, default: true,
              help: "Retry a GET, HEAD or OPTIONS once, with another worker, if its worker died before it answered.",
              notes: <<~MARKDOWN,
                Pando does not retry a request that may have killed its worker:

                - the worker exited, or crashed (SEGV, BUS, ABRT and the like);
                - it was killed for its timeout, for its memory, or by the kernel because memory ran out;
                - it died in any other way, and another worker has died at the same method and path within the last
                  minute.

                `env["pando.retry"]` is true in the second attempt.
              MARKDOWN
              example: "retry_requests false"
    end
  end
end
