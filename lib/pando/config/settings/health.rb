# frozen_string_literal: true

module Pando
  class Config
    # What Pando tells load balancers about the server.
    Settings.group "Load balancers" do
      path = Types::Text.new("a path that begins with a slash", %r{\A/[\x21\x22\x24-\x3e\x40-\x7e]{0,200}\z})
      reactors = lambda { |value, config|
        "needs the reactor, but the config says `reactor false`" if value && !config.reactor
      }

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
              check: reactors

      setting :health_live,
              type: Types::OrOff.new(path), default: nil, within: :health, keyword: :live,
              help: "The path where the reactor answers 200 while it and the monitor work, even in a boot or drain.",
              example: 'health "/readyz", live: "/livez"',
              check: lambda { |path, config|
                next "must not be #{path}, which is the path of health: the two answer different questions" if
                  path && path == config.health

                reactors.call(path, config)
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
  end
end
