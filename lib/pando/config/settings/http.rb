# frozen_string_literal: true

module Pando
  class Config
    # What a client may send, and how slowly.
    Settings.group "HTTP limits" do
      setting :max_target_bytes,
              type: Types::Bytes.new(16..65_536), default: 8192, unit: "bytes",
              help: "Longest request target, path and query; a longer one is answered with 414.",
              example: "max_target_bytes 16.kb"

      setting :max_header_bytes,
              type: Types::Bytes.new(1024..1_048_576), default: 65_536, unit: "bytes",
              help: "Longest request head, all fields together; a longer one is answered with 431.",
              example: "max_header_bytes 128.kb"

      setting :max_headers,
              type: Types::Whole.new(1..1000), default: 100, unit: "fields",
              help: "Most header fields of a request; more are answered with 431.",
              example: "max_headers 200"

      setting :max_body_bytes,
              type: Types::OrOff.new(Types::Bytes.new(0..)), default: 1_073_741_824, unit: "bytes",
              help: "Longest request body; a longer one is answered with 413. false sets no limit.",
              notes: "When a body is refused for it, the log names this setting.",
              example: "max_body_bytes 100.mb"

      setting :body_memory,
              type: Types::Bytes.new(0..1_073_741_824), default: 114_688, unit: "bytes",
              help: "A request body is kept in memory up to this size and in a temporary file beyond.",
              notes: "Behind the reactor a chunked body, whose size nobody announces, is in a file from 16 KiB on.",
              example: "body_memory 1.mb"

      setting :header_timeout,
              type: Types::Seconds.new, default: 10.0, unit: "seconds",
              help: "A client must send the whole request head within this time, or gets 408.",
              example: "header_timeout 5"

      setting :body_timeout,
              type: Types::Seconds.new, default: 30.0, unit: "seconds",
              help: "A client may pause this long while it sends a body, or gets 408.",
              notes: "It must also send 1 KiB a second: it may fall behind that by as long as this, and what it " \
                     "has sent faster counts for 10 seconds at most.",
              example: "body_timeout 60"

      setting :write_timeout,
              type: Types::Seconds.new, default: 30.0, unit: "seconds",
              help: "A client may take nothing of a response for this long before its connection is closed.",
              notes: "It must also take 1 KiB a second: it may fall behind that by as long as this, and what it " \
                     "has taken faster counts for 10 seconds at most.",
              example: "write_timeout 60"

      setting :trusted_proxies,
              type: Types::Networks.new, default: %w[loopback unix].freeze,
              flags: %w[--trusted-proxies], argument: "LIST",
              help: "Proxies whose X-Forwarded-For, -Proto and -Ssl decide REMOTE_ADDR and rack.url_scheme.",
              notes: "Addresses, networks such as 10.0.0.0/8, and the words `loopback`, `private` (10.0.0.0/8, " \
                     "172.16.0.0/12, 192.168.0.0/16, fc00::/7 and link-local addresses) and `unix` (whoever connects " \
                     "by a unix socket). A list replaces the default; false trusts nobody.",
              example: 'trusted_proxies ["10.0.0.0/8", "loopback", "unix"]'
    end

    # What is not waited for.
    Settings.group "HTTP streaming" do
      setting :stream_bodies,
              type: Types::Text.new("a path that begins with a slash", %r{\A/[\x21-\x7e]{0,1000}\z}),
              default: [].freeze, traits: %i[repeatable],
              help: "Requests to this path, and below it, are served before their bodies have arrived. Repeatable.",
              notes: "`rack.input` then waits for the client at each read and cannot be rewound. A slow client keeps " \
                     "its worker busy, and its connection serves this request only.",
              example: 'stream_bodies "/uploads"'
    end

    # Where an answer waits for its client, and what else a client may be told.
    Settings.group "HTTP answers" do
      size = Types::Bytes.new(16_384..1_073_741_824)

      setting :answer_memory,
              type: size, default: 1_048_576, unit: "bytes",
              check: lambda { |one, config|
                all = config.answer_memory_total
                next if one <= all

                "must not be more than its total:, #{size.write(all)}, but is #{size.write(one)}. " \
                  "Write answer_memory #{size.write(one)}, total: #{size.write(one)} or more"
              },
              help: "An answer waits for a slow client in memory up to this size, and the rest in the spool.",
              notes: "Its worker is done as soon as it has written the answer. In direct mode a worker waits for " \
                     "its client, and the setting means nothing.",
              example: "answer_memory 4.mb, total: 256.mb"

      setting :answer_memory_total,
              type: Types::Bytes.new(1_048_576..), default: 67_108_864, unit: "bytes",
              within: :answer_memory, keyword: :total,
              help: "And up to this size for all clients together."

      setting :spool,
              type: Types::OrOff.new(Types::Text.new("the path of a directory", /\A[^\0]+\z/)), default: nil,
              resolve: ->(path, directory) { path && File.expand_path(path, directory) },
              help: "The directory of the nameless files in which large request bodies and answers wait; false: " \
                    "TMPDIR, or /tmp.",
              notes: "A disk, not a tmpfs, for that is memory: `spool.in_memory` in the log names one, but not in " \
                     "development. An obstacle is told by `pando --check`, by `spool.unavailable` at the start, " \
                     "and by `spool.failed` later.",
              example: 'spool "/var/tmp", total: 20.gb'

      setting :spool_total,
              type: Types::Bytes.new(1_048_576..), default: 4_294_967_296, unit: "bytes",
              within: :spool, keyword: :total,
              help: "How much of it the reactor may use; beyond it workers wait for slow readers, or these are cut.",
              notes: "At most half of the workers wait; instead of one more, the connection of the slowest reader is " \
                     "reset, and so it is for a request body that needs the space. If that is not enough, the " \
                     "longest body that is being read gets 503; one that is larger than this gets 413. Where " \
                     "the file system has less room, that counts. `requests.lost`, `requests.shed` and " \
                     "`requests.refused` count them."

      setting :early_hints,
              type: Types::Truth.new, default: false,
              help: "Let the application send 103 Early Hints before its answer, with `rack.early_hints`.",
              notes: "Only clients that speak HTTP/1.1 get them. Off by default, since some proxies take the first " \
                     "103 for the answer.",
              example: "early_hints true"
    end
  end
end
