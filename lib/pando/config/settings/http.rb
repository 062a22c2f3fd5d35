# frozen_string_literal: true

module Pando
  class Config
    # What a client may send, and how slowly it may send or read.
    Settings.group "HTTP limits" do
      setting :max_target_bytes,
              type: Types::Bytes.new(16..65_536), default: 8192, unit: "bytes",
              help: "The longest request target (path and query). A longer one gets 414.",
              example: "max_target_bytes 16.kb"

      setting :max_header_bytes,
              type: Types::Bytes.new(1024..1_048_576), default: 65_536, unit: "bytes",
              help: "The longest request head, all header fields together. A longer one gets 431.",
              example: "max_header_bytes 128.kb"

      setting :max_headers,
              type: Types::Whole.new(1..1000), default: 100, unit: "fields",
              help: "How many header fields a request may have. With more it gets 431.",
              example: "max_headers 200"

      setting :max_body_bytes,
              type: Types::OrOff.new(Types::Bytes.new(0..)), default: 1_073_741_824, unit: "bytes",
              help: "The longest request body. A longer one gets 413. false: no limit.",
              notes: "When Pando refuses a body because of this limit, the log names this setting.",
              example: "max_body_bytes 100.mb"

      setting :body_memory,
              type: Types::Bytes.new(0..1_073_741_824), default: 114_688, unit: "bytes",
              help: "Keep a request body in memory up to this size, and a larger one in a temporary file.",
              notes: "Behind the reactor a chunked body, which announces no size, goes to a file from 16 KiB on.",
              example: "body_memory 1.mb"

      setting :header_timeout,
              type: Types::Seconds.new, default: 10.0, unit: "seconds",
              help: "How long a client may take to send the whole request head. After that it gets 408.",
              example: "header_timeout 5"

      setting :body_timeout,
              type: Types::Seconds.new, default: 30.0, unit: "seconds",
              help: "How long a client may pause while it sends a body. After that it gets 408.",
              notes: <<~MARKDOWN,
                The client must also send 1 KiB per second. It may fall behind that rate by as much as this timeout.
                Data sent faster than that gives it a credit of at most 10 seconds.
              MARKDOWN
              example: "body_timeout 60"

      setting :write_timeout,
              type: Types::Seconds.new, default: 30.0, unit: "seconds",
              help: "How long a client may read nothing of a response before Pando closes the connection.",
              notes: <<~MARKDOWN,
                The client must also read 1 KiB per second. It may fall behind that rate by as much as this timeout.
                Data read faster than that gives it a credit of at most 10 seconds.
              MARKDOWN
              example: "write_timeout 60"

      setting :trusted_proxies,
              type: Types::Networks.new, default: %w[loopback unix].freeze,
              flags: %w[--trusted-proxies], argument: "LIST",
              help: "Proxies whose X-Forwarded-For, -Proto and -Ssl set REMOTE_ADDR and rack.url_scheme.",
              notes: <<~MARKDOWN,
                `private` stands for 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7 and link-local addresses,
                `unix` for every client that connects through a unix socket. Your list replaces the default. `false`
                trusts no proxy.
              MARKDOWN
              example: 'trusted_proxies ["10.0.0.0/8", "loopback", "unix"]'
    end

    # Which requests reach the application before their bodies are complete.
    Settings.group "HTTP streaming" do
      setting :stream_bodies,
              type: Types::Text.new("a path that begins with a slash", %r{\A/[\x21-\x7e]{0,1000}\z}),
              default: [].freeze, traits: %i[repeatable],
              help: "Serve requests to this path, and below it, before their bodies have arrived. Repeatable.",
              notes: <<~MARKDOWN,
                `rack.input` then waits for the client at each read, and the application cannot rewind it. A slow client
                keeps its worker busy, and its connection serves only this request.
              MARKDOWN
              example: 'stream_bodies "/uploads"'
    end

    # Where a response waits for a slow client, and early hints.
    Settings.group "HTTP responses" do
      size = Types::Bytes.new(16_384..1_073_741_824)

      setting :answer_memory,
              type: size, default: 1_048_576, unit: "bytes",
              check: lambda { |one, config|
                all = config.answer_memory_total
                next if one <= all

                "must not be more than its total:, #{size.write(all)}, but is #{size.write(one)}. " \
                  "Write answer_memory #{size.write(one)}, total: #{size.write(one)} or more"
              },
              help: "Keep up to this much of a response in memory for a slow client, and the rest in the spool.",
              notes: <<~MARKDOWN,
                The worker is free as soon as it has written the response. In direct mode a worker waits for its client,
                and the setting has no effect.
              MARKDOWN
              example: "answer_memory 4.mb, total: 256.mb"

      setting :answer_memory_total,
              type: Types::Bytes.new(1_048_576..), default: 67_108_864, unit: "bytes",
              within: :answer_memory, keyword: :total,
              help: "How much memory the responses of all clients together may use."

      setting :spool,
              type: Types::OrOff.new(Types::Path.new("a directory")), default: nil,
              help: "The directory for large request bodies and waiting responses. false: TMPDIR, or /tmp.",
              notes: <<~MARKDOWN,
                Pando stores them in files without a name. Choose a directory on a disk, because a tmpfs is memory. The
                event `spool.in_memory` warns of a tmpfs, except in development. If Pando cannot use the directory,
                `pando --check` says so, and at the start the event `spool.unavailable`. `spool.failed` reports errors
                that occur later.
              MARKDOWN
              example: 'spool "/var/tmp", total: 20.gb'

      setting :spool_total,
              type: Types::Bytes.new(1_048_576..), default: 4_294_967_296, unit: "bytes",
              within: :spool, keyword: :total,
              help: "How much of the spool the reactor may use. Beyond it slow readers hold up workers or are cut off.",
              notes: <<~MARKDOWN
                At most half of the workers wait. To keep one more from waiting, the reactor resets the connection of
                the slowest reader. It does the same if a request body needs the space. If that is not enough, the
                longest body that is still being read gets 503. A body that is larger than this limit gets 413. If the
                file system has less room, that is the limit.

                The events `requests.lost` (connections reset), `requests.shed` (503) and `requests.refused` (413) count
                these cases.
              MARKDOWN

      setting :early_hints,
              type: Types::Truth.new, default: false,
              help: "Let the application send 103 Early Hints before its response, with `rack.early_hints`.",
              notes: <<~MARKDOWN,
                Only clients that speak HTTP/1.1 get them. The setting is off by default, because some proxies mistake
                the first 103 for the response.
              MARKDOWN
              example: "early_hints true"
    end

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
              help: "How many requests may wait for a worker. A further request gets 503 at once.",
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

    # What Pando tells load balancers about the server.
    Settings.group "Load balancers" do
      path = Types::Text.new("a path that begins with a slash", %r{\A/[\x21\x22\x24-\x3e\x40-\x7e]{0,200}\z})

      setting :health,
              type: Types::OrOff.new(path), default: nil,
              help: "The path where the reactor says whether the server is ready for requests: 200 or 503.",
              notes: <<~MARKDOWN,
                The reactor answers GET and HEAD at this path by itself, however busy the workers are. These requests
                never reach the application, even if it has the same path. The answer is 503 before the first worker is
                ready, while no worker lives, after `pando drain`, and from the beginning of a stop.

                With this setting the reactor starts before the application is loaded. Requests that arrive meanwhile
                wait, for at most `queue_timeout`. See [containers](containers.md).
              MARKDOWN
              example: 'health "/up"',
              check: Settings::NEEDS_REACTOR

      setting :health_live,
              type: Types::OrOff.new(path), default: nil, within: :health, keyword: :live,
              help: "The path where the reactor answers 200 while it and the monitor work, even in a boot or drain.",
              example: 'health "/readyz", live: "/livez"',
              check: lambda { |path, config|
                next "must not be #{path}, which is the path of health: the two answer different questions" if
                  path && path == config.health

                Settings::NEEDS_REACTOR.call(path, config)
              }

      setting :drain_delay,
              type: Types::Seconds.new(zero: true), default: 0.0, unit: "seconds",
              help: "How long a graceful stop keeps serving after its health check has turned to 503.",
              notes: <<~MARKDOWN,
                Load balancers need this time to notice: a few intervals of their health check, or as long as an
                orchestrator takes to tell them. A second TERM ends the delay; INT skips it. `stop_timeout` begins after
                the delay.
              MARKDOWN
              example: "drain_delay 5"
    end

    # What Pando profiles in the application.
    Settings.group "Profiling" do
      setting :first_request_profile,
              type: Types::Truth.new, default: false,
              help: "Profile the first request that each generation serves.",
              notes: "Pando uses Vernier or StackProf, whichever is in the bundle. See [profiling](profiling.md).",
              example: 'first_request_profile true, folder: "log/profiles"'

      setting :first_request_profile_folder,
              type: Types::Path.new("a directory"), default: "tmp/profiles",
              within: :first_request_profile, keyword: :folder,
              help: "The directory for the profiles, one file per generation."
    end
  end
end
