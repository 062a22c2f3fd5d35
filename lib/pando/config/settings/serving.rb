# frozen_string_literal: true

module Pando
  class Config
    # What Pando serves, where it listens, and in which environment it runs.
    Settings.group "Serving" do
      setting :rackup,
              type: Types::Path.new("a rackup file"), default: "config.ru",
              argument: "RACKUP", traits: %i[positional],
              help: "The rackup file to serve."

      setting :listen,
              type: Types::ListenOn.new, traits: %i[repeatable], default: [Listen.parse("127.0.0.1:8080")].freeze,
              rails: [Listen.parse("0.0.0.0:3000")].freeze,
              rails_development: [Listen.parse("127.0.0.1:3000")].freeze,
              flags: %w[-l --listen], argument: "ADDRESS", env: "PORT",
              check: ->(all, _) { "names #{all.tally.key(all.tally.values.max)} twice" if all.uniq.size < all.size },
              help: "An address to listen on: HOST:PORT, PORT, [v6]:PORT, unix:PATH, unix:@ABSTRACT or systemd. " \
                    "Repeatable.",
              options: [
                Option.new(name: :backlog, type: Types::Whole.new(1..65_535), default: 1024,
                           help: "How many connections may wait to be accepted."),
                Option.new(name: :proxy_protocol, type: Types::Truth.new, default: false,
                           help: "Require a PROXY protocol header (version 1 or 2) on each connection; it " \
                                 "names the client. Pando closes a connection without one."),
                Option.new(name: :tcp_nodelay, type: Types::Truth.new, default: true,
                           help: "Send small packets at once (TCP_NODELAY)."),
                Option.new(name: :defer_accept, type: Types::OrOff.new(Types::Whole.new(1..600)), default: 1,
                           help: "Wake no process before the request has arrived, for at most this many " \
                                 "seconds (TCP_DEFER_ACCEPT)."),
                Option.new(name: :mode, type: Types::FileMode.new, default: nil,
                           help: "The permission bits of a unix socket's file."),
                Option.new(name: :umask, type: Types::FileMode.new, default: nil,
                           help: "The umask under which Pando creates a unix socket's file.")
              ]

      setting :control,
              type: Types::OrOff.new(Types::Path.new("a socket")), default: "tmp/pando.sock", swarm: "tmp/swarm.sock",
              flags: %w[--control], argument: "PATH",
              check: lambda { |path, _|
                "is longer than #{Listen::LONGEST_NAME} bytes: #{path}" if path.to_s.bytesize > Listen::LONGEST_NAME
              },
              help: "The UNIX socket through which commands such as `pando status` reach the running server."

      setting :admin,
              type: Types::AdminOn.new, traits: %i[repeatable], default: [].freeze,
              flags: %w[--admin], argument: "ADDRESS",
              check: ->(all, _) { "names #{all.tally.key(all.tally.values.max)} twice" if all.uniq.size < all.size },
              help: "An address at which a separate process shows metrics, status and events: HOST:PORT, [v6]:PORT " \
                    "or unix:PATH. Repeatable.",
              options: [
                Option.new(name: :mode, type: Types::FileMode.new, default: nil,
                           help: "The permission bits of a unix socket's file. [0600]")
              ]

      setting :admin_token_file,
              type: Types::OrOff.new(Types::Path.new("a file")), default: nil, within: :admin,
              serves: ->(config) { config.admin.any? },
              help: "A file with the token for commands at the admin address."

      setting :admin_token_env,
              type: Types::OrOff.new(Types::Text.new("the name of an environment variable", /\A[A-Za-z_]\w*\z/)),
              default: nil, within: :admin, serves: ->(config) { config.admin.any? },
              help: "The environment variable with the token for commands at the admin address."

      setting :admin_hosts,
              type: Types::Texts.new("a list of host names", pattern: /\A[\w.-]+\z/), default: [].freeze,
              within: :admin, serves: ->(config) { config.admin.any? },
              help: "Host names under which clients may ask at the admin address."

      setting :pidfile,
              type: Types::OrOff.new(Types::Path.new("a file")), default: nil,
              flags: %w[--pidfile], argument: "PATH", env: "PIDFILE",
              help: "A file that holds the server's process id while the server runs."

      setting :restart_file,
              type: Types::OrOff.new(Types::Path.new("a file")), default: nil,
              rails: "tmp/restart.txt",
              help: "Touch this file to reload the application, as `pando reload` does."

      setting :environment,
              type: Types::Text.new("a name such as production", /\A[\w.-]+\z/), default: "development",
              flags: %w[-e --environment], argument: "ENV", env: Settings::ENVIRONMENT_VARIABLES, traits: %i[readable],
              help: "The environment that the application runs in."

      setting :directory,
              type: Types::Path.new("a directory"), default: ".",
              flags: %w[-C --directory], argument: "DIR", traits: %i[flag_only readable],
              help: "The directory that Pando changes to before it looks for the config file."

      setting :config_file,
              type: Types::Path.new("a config file"), default: nil,
              flags: %w[-c --config], argument: "FILE", traits: %i[flag_only],
              help: "The config file. Without the flag: config/pando.rb, if it exists. `pando swarm` looks for " \
                    "config/swarm.rb first. If both exist, commands such as `pando stop` need this flag while the " \
                    "server of config/swarm.rb runs."

      setting :log_format,
              type: Types::Choice.new(:text, :json), default: :text,
              flags: %w[--log-format], argument: "text|json",
              help: "How events are logged to stderr: as lines of text, or as one JSON object per line."

      setting :log_level,
              type: Types::Choice.new(:info, :notice, :warn, :error), default: :info, development: :notice,
              flags: %w[--log-level], argument: "LEVEL",
              help: "The lowest level of events that Pando logs."
    end

    # How many workers there are, and how Pando replaces them.
    Settings.group "Workers" do
      setting :workers,
              type: Types::Workers.new(0..1024), default: :auto, development: 1, unit: "processes",
              flags: %w[-w --workers], argument: "N", env: "WEB_CONCURRENCY", meant: { 0 => 1 },
              help: "How many workers serve requests. auto: one per CPU, or fewer if memory is short."

      setting :threads,
              type: Types::WholeOrAuto.new(1..64), default: 1, development: 1, unit: "requests",
              flags: %w[--threads], argument: "N", env: Threads::VARIABLE, traits: %i[shared_env],
              check: ->(_, config) { Threads.obstacle(config) },
              help: "How many requests a worker may have at once, each on a thread of its own."

      setting :rollout_surge,
              type: Types::Whole.new(0..1024), default: 1, unit: "workers", within: :rollout,
              help: "How many extra workers may run during a rollout.",
              check: lambda { |surge, config|
                "cannot be 0 while unavailable: is 0" if (surge + config.rollout_unavailable).zero?
              }

      setting :rollout_unavailable,
              type: Types::Whole.new(0..1024), default: 0, unit: "workers", within: :rollout,
              help: "How many workers may be missing during a rollout."

      setting :rollout_canary,
              type: Types::Canary.new, default: :auto, development: false, within: :rollout,
              flags: %w[--canary], argument: "auto|off|REQUESTS,SECONDS,LONGEST",
              help: "What the first worker of a new generation must do before Pando replaces the others."

      setting :rollout_safe_paths,
              type: Types::Texts.new("a list of paths such as [\"/\", \"/products\"]", pattern: %r{\A/[!-~]*\z}),
              default: [].freeze, within: :rollout,
              help: "Paths that a canary may request from itself when no client sends requests."

      setting :self_test,
              type: Types::OrOff.new(Types::Text.new("a method and a path such as GET /up",
                                                     %r{\A[A-Z]{1,16} /[!-~]*\z})), default: nil,
              rails: "GET /up", rails_development: nil,
              flags: %w[--self-test], argument: "REQUEST",
              help: "A request that each new worker sends itself before it takes traffic."

      setting :oom_score_adj,
              type: Types::OrOff.new(Types::Whole.new(0..1000)), default: 100,
              help: "How much sooner than the monitor the kernel kills a worker when memory runs out."
    end
  end
end
