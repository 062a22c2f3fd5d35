# frozen_string_literal: true

module Pando
  class Config
    # What a client may send, and how slowly it may send or read.
    Settings.group "HTTP limits" do
      setting :max_target_bytes,
              type: Types::Bytes.new(16..65_536), default: 8192, traits: %i[reactor],
              help: "The longest request target (path and query). A longer one gets 414."

      setting :max_header_bytes,
              type: Types::Bytes.new(1024..1_048_576), default: 65_536, traits: %i[reactor],
              help: "The longest request head, all header fields together. A longer one gets 431."

      setting :max_headers,
              type: Types::Whole.new(1..1000), default: 100, unit: "fields", traits: %i[reactor],
              help: "How many header fields a request may have. With more it gets 431."

      setting :max_body_bytes,
              type: Types::OrOff.new(Types::Bytes.new(0..)), default: 1_073_741_824, traits: %i[reactor],
              help: "The longest request body. A longer one gets 413. false: no limit."

      setting :body_memory,
              type: Types::Bytes.new(0..1_073_741_824), default: 114_688, traits: %i[reactor],
              help: "Keep a request body in memory up to this size, and a larger one in a temporary file."

      setting :header_timeout,
              type: Types::Seconds.new, default: 10.0, traits: %i[reactor],
              help: "How long a client may take to send the whole request head. After that it gets 408."

      setting :body_timeout,
              type: Types::Seconds.new, default: 30.0, traits: %i[reactor],
              help: "How long a client may pause while it sends a body. After that it gets 408."

      setting :write_timeout,
              type: Types::Seconds.new, default: 30.0, traits: %i[reactor],
              help: "How long a client may read nothing of a response before Pando closes the connection."

      setting :trusted_proxies,
              type: Types::Networks.new, default: %w[loopback unix].freeze,
              flags: %w[--trusted-proxies], argument: "LIST",
              help: "Proxies whose X-Forwarded-For, -Proto and -Ssl set REMOTE_ADDR and rack.url_scheme."
    end

    # Which requests reach the application before their bodies are complete.
    Settings.group "HTTP streaming" do
      setting :stream_bodies,
              type: Types::Text.new("a path that begins with a slash", %r{\A/[\x21-\x7e]{0,1000}\z}),
              default: [].freeze, traits: %i[reactor repeatable],
              help: "Serve requests to this path, and below it, before their bodies have arrived. Repeatable."
    end

    # Where a response waits for a slow client, and early hints.
    Settings.group "HTTP responses" do
      size = Types::Bytes.new(16_384..1_073_741_824)

      setting :response_memory,
              type: size, default: 1_048_576, traits: %i[reactor],
              check: lambda { |one, config|
                all = config.response_memory_total
                next if one <= all

                "must not be more than its total:, #{size.write(all)}, but is #{size.write(one)}. " \
                  "Write response_memory #{size.write(one)}, total: #{size.write(one)} or more"
              },
              help: "Keep up to this much of a response in memory for a slow client, and the rest in the spool."

      setting :response_memory_total,
              type: Types::Bytes.new(1_048_576..), default: 67_108_864, within: :response_memory, traits: %i[reactor],
              help: "How much memory the responses of all clients together may use."

      setting :spool,
              type: Types::OrOff.new(Types::Path.new("a directory")), default: nil, traits: %i[reactor],
              help: "The directory for large request bodies and waiting responses. false: TMPDIR, or /tmp."

      setting :spool_total,
              type: Types::Bytes.new(1_048_576..), default: 4_294_967_296, within: :spool, traits: %i[reactor],
              help: "How much of the spool the reactor may use. Beyond it slow readers hold up workers or are cut off."

      setting :early_hints,
              type: Types::Truth.new, default: false,
              flags: %w[--early-hints], argument: "true|false",
              help: "Let the application send 103 Early Hints before its response, with `rack.early_hints`."
    end

    # The process that holds the clients' connections, and its limits.
    Settings.group "Reactor" do
      setting :reactor,
              type: Types::Truth.new, default: true,
              flags: %w[--reactor], argument: "true|false",
              help: "Whether a reactor process holds all connections. false: workers accept their own (direct mode)."

      setting :idle_timeout,
              type: Types::Seconds.new, default: 65.0, traits: %i[reactor],
              help: "Close a keep-alive connection that sends no further request for this long."

      setting :queue_timeout,
              type: Types::OrOff.new(Types::Seconds.new), default: 30.0, development: nil, traits: %i[reactor],
              help: "How long a request may wait for a worker. After that it gets 503."

      setting :max_queue,
              type: Types::Whole.new(1..100_000), default: 1024, unit: "requests", traits: %i[reactor],
              help: "How many requests may wait for a worker. A further request gets 503 at once."

      setting :max_connections,
              type: Types::Whole.new(1..1_000_000), default: 16_384, unit: "connections", traits: %i[reactor],
              help: "How many connections the reactor holds at once."

      setting :max_connections_per_address,
              type: Types::OrOff.new(Types::Whole.new(1..1_000_000)), default: nil, unit: "connections",
              traits: %i[reactor],
              help: "How many connections one client may have at once. One more gets 503. false: no limit."

      setting :max_keepalive_requests,
              type: Types::OrOff.new(Types::Whole.new(1..1_000_000_000)), default: nil, unit: "requests",
              traits: %i[reactor],
              help: "How many requests a connection may send before Pando closes it. false: no limit."

      setting :retry_after,
              type: Types::Whole.new(1..86_400), default: 5, unit: "seconds", traits: %i[reactor],
              help: "The Retry-After header of the reactor's 503: how long a client should wait before it tries again."

      setting :retry_requests,
              type: Types::Truth.new, default: true, traits: %i[reactor],
              help: "Retry a GET, HEAD or OPTIONS once, with another worker, if its worker died before it answered."
    end

    # What Pando tells load balancers about the server.
    Settings.group "Load balancers" do
      path = Types::Text.new("a path that begins with a slash", %r{\A/[\x21\x22\x24-\x3e\x40-\x7e]{0,200}\z})

      setting :health,
              type: Types::OrOff.new(path), default: nil, traits: %i[reactor],
              help: "The path where the reactor says whether the server is ready for requests: 200 or 503.",
              check: Settings::NEEDS_REACTOR

      setting :health_live,
              type: Types::OrOff.new(path), default: nil, within: :health, traits: %i[reactor],
              help: "The path where the reactor answers 200 while it and the monitor work, even in a boot or drain.",
              check: lambda { |path, config|
                next "must not be #{path}, which is the path of health: the two answer different questions" if
                  path && path == config.health

                Settings::NEEDS_REACTOR.call(path, config)
              }

      setting :drain_delay,
              type: Types::Seconds.new(least: 0), default: 0.0,
              help: "How long a graceful stop keeps serving after its health check has turned to 503."
    end
  end
end
