# frozen_string_literal: true

module Pando
  class Config
    # What is served, where, and in which surroundings.
    Settings.group "Serving" do
      setting :rackup,
              type: Types::Text.new("the path of a rackup file", /\A[^\0]+\z/), default: "config.ru",
              argument: "RACKUP", traits: %i[positional],
              resolve: ->(path, directory) { File.expand_path(path, directory) },
              help: "The rackup file of the application to serve.", example: 'rackup "app.ru"'

      setting :listen,
              type: Types::ListenOn.new, traits: %i[repeatable], default: [Listen.parse("127.0.0.1:8080")].freeze,
              rails: [Listen.parse("0.0.0.0:3000")].freeze,
              rails_development: [Listen.parse("127.0.0.1:3000")].freeze,
              flags: %w[-l --listen], argument: "ADDRESS", env: "PORT",
              resolve: ->(listen, directory) { listen.in(directory) },
              check: ->(all, _) { "names #{all.tally.key(all.tally.values.max)} twice" if all.uniq.size < all.size },
              help: "An address to listen on: HOST:PORT, PORT, [v6]:PORT, unix:PATH, unix:@ABSTRACT or systemd. " \
                    "Repeatable.",
              notes: "A bare PORT, `-l` or the environment variable's, means 0.0.0.0:PORT: every IPv4 address. " \
                     "`tcp://` may stand before the host. A relative path counts from the directory of `-C`. " \
                     "Flags replace the addresses of the file, they do not add to them. A socket that systemd has " \
                     "opened for the service is used for the line with its address; `systemd` stands for all that no " \
                     "other line names, `systemd:NAME` for those of that FileDescriptorName. See docs/systemd.md.",
              example: 'listen "unix:tmp/web.sock", backlog: 512, mode: 0o660',
              options: [
                Setting::Option.new(name: :backlog, type: Types::Whole.new(1..65_535), default: 1024,
                                    help: "Connections that may wait to be accepted."),
                Setting::Option.new(name: :proxy_protocol, type: Types::Truth.new, default: false,
                                    help: "Each connection opens with a PROXY protocol header, version 1 or 2, which " \
                                          "names the client; one that does not is closed."),
                Setting::Option.new(name: :tcp_nodelay, type: Types::Truth.new, default: true,
                                    help: "Send small packets at once (TCP_NODELAY)."),
                Setting::Option.new(name: :defer_accept, type: Types::OrOff.new(Types::Whole.new(1..600)), default: 1,
                                    help: "Wake no worker before the request has arrived, for this many seconds " \
                                          "at most (TCP_DEFER_ACCEPT)."),
                Setting::Option.new(name: :mode, type: Types::FileMode.new, default: nil,
                                    help: "Permission bits of a unix socket's file."),
                Setting::Option.new(name: :umask, type: Types::FileMode.new, default: nil,
                                    help: "The umask a unix socket's file is made under.")
              ]

      setting :control,
              type: Types::OrOff.new(Types::Text.new("the path of a socket", /\A[^\0]+\z/)), default: "tmp/pando.sock",
              flags: %w[--control], argument: "PATH",
              resolve: ->(path, directory) { path && File.expand_path(path, directory) },
              check: lambda { |path, _|
                "is longer than #{Address::LONGEST_NAME} bytes: #{path}" if path.to_s.bytesize > Address::LONGEST_NAME
              },
              help: "The UNIX socket at which `pando status` and the other commands ask the running server.",
              notes: "Made with mode 0600; only the server's own user and root are heard. The default path's folder " \
                     "is made where there is none; if that cannot be, `control.unavailable` says so, and there is no " \
                     "control socket.",
              example: 'control "/run/shop/pando.sock"'

      setting :pidfile,
              type: Types::OrOff.new(Types::Text.new("the path of a file", /\A[^\0]+\z/)), default: nil,
              flags: %w[--pidfile], argument: "PATH", env: "PIDFILE",
              resolve: ->(path, directory) { path && File.expand_path(path, directory) },
              help: "A file that holds the server's process id for as long as the server runs.",
              notes: "The server does not start while the process that the file names is a server of this folder. A " \
                     "file that a killed server left behind is replaced.",
              example: 'pidfile "tmp/pids/server.pid"'

      setting :restart_file,
              type: Types::OrOff.new(Types::Text.new("the path of a file", /\A[^\0]+\z/)), default: nil,
              rails: "tmp/restart.txt",
              resolve: ->(path, directory) { path && File.expand_path(path, directory) },
              help: "Touching this file reloads the application, as `pando reload` does.",
              notes: "`bin/rails restart` touches tmp/restart.txt. The server looks at the file once a second.",
              example: 'restart_file "tmp/restart.txt"'

      setting :environment,
              type: Types::Text.new("a name such as production", /\A[\w.-]+\z/), default: "development",
              flags: %w[-e --environment], argument: "ENV", env: Settings::ENVIRONMENT_VARIABLES, traits: %i[readable],
              help: "The environment the application runs in.",
              notes: "The application finds it in `RAILS_ENV`, `RACK_ENV` and `APP_ENV`. In the environments " \
                     "development and test several settings have other defaults: one worker, no reforking, no " \
                     "deadlines. [More](rails.md#development). Without a value, `environment` in the config file " \
                     "returns what a flag, a line before or the environment variables have set.",
              example: 'environment "production"'

      setting :directory,
              type: Types::Text.new("the path of a directory", /\A[^\0]+\z/), default: ".",
              flags: %w[-C --directory], argument: "DIR", traits: %i[flag_only readable],
              help: "Change to this directory first: before the config file is looked for."

      setting :config_file,
              type: Types::Text.new("the path of a config file", /\A[^\0]+\z/), default: nil,
              flags: %w[-c --config], argument: "FILE", traits: %i[flag_only],
              help: "The config file. Without the flag: config/pando.rb, if there is one; of `pando swarm`, " \
                    "config/swarm.rb before it."

      setting :log_format,
              type: Types::Choice.new(:text, :json), default: :text,
              flags: %w[--log-format], argument: "text|json",
              help: "Events are logged to stderr as lines for people, or as one JSON object each.",
              example: "log_format :json"

      setting :log_level,
              type: Types::Choice.new(:info, :notice, :warn, :error), default: :info, development: :notice,
              flags: %w[--log-level], argument: "LEVEL",
              help: "Which events are logged: all, or those from a level upwards.",
              notes: "`notice` is what a server at a terminal has to say: the address, reloads, " \
                     "the stop, warnings and errors. It changes nothing for `on` and other subscribers. " \
                     "[The events](events.md#the-log).",
              example: "log_level :info"
    end
  end
end
