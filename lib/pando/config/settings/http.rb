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
                What it has sent faster gives it a credit of at most 10 seconds.
              MARKDOWN
              example: "body_timeout 60"

      setting :write_timeout,
              type: Types::Seconds.new, default: 30.0, unit: "seconds",
              help: "How long a client may read nothing of a response before Pando closes the connection.",
              notes: <<~MARKDOWN,
                The client must also read 1 KiB per second. It may fall behind that rate by as much as this timeout.
                What it has read faster gives it a credit of at most 10 seconds.
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
              type: Types::OrOff.new(Types::Text.new("the path of a directory", /\A[^\0]+\z/)), default: nil,
              resolve: ->(path, directory) { path && File.expand_path(path, directory) },
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
  end
end
