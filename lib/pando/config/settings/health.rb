# frozen_string_literal: true

module Pando
  class Config
    # What whoever sends the requests here is told of the server.
    Settings.group "Load balancers" do
      path = Types::Text.new("a path that begins with a slash", %r{\A/[\x21\x22\x24-\x3e\x40-\x7e]{0,200}\z})
      reactors = lambda { |value, config|
        "is answered by the reactor, and there is none with `reactor false`" if value && !config.reactor
      }

      setting :health,
              type: Types::OrOff.new(path), default: nil,
              help: "Where the reactor itself answers whether requests are welcome: 200, or 503.",
              notes: "However busy the workers are, and whether the application has such a path or not: GET and HEAD " \
                     "there never reach it. 503 before the first worker is ready, while none lives, after " \
                     "`pando drain` and from the beginning of a stop on. With this setting the reactor starts " \
                     "before the application is loaded: what is asked meanwhile waits, for `queue_timeout` at most. " \
                     "See [containers.md](containers.md).",
              example: 'health "/up"',
              check: reactors

      setting :health_live,
              type: Types::OrOff.new(path), default: nil, within: :health, keyword: :live,
              help: "Where it answers 200 while reactor and monitor are at work, during a boot and a drain too.",
              example: 'health "/readyz", live: "/livez"',
              check: lambda { |path, config|
                next "must not be #{path}, the path of health: the two say different things" if
                  path && path == config.health

                reactors.call(path, config)
              }

      setting :drain_delay,
              type: Types::Seconds.new(zero: true), default: 0.0, unit: "seconds",
              help: "How long a graceful stop goes on serving after it has told load balancers to send no more.",
              notes: "As long as they need to notice: a few intervals of their health check, or what an " \
                     "orchestrator takes to spread the word. A second TERM cuts it short; INT does without. " \
                     "`stop_timeout` begins after it.",
              example: "drain_delay 5"
    end
  end
end
