# frozen_string_literal: true

module Pando
  class Config
    # How many workers there are, and how Pando replaces them.
    Settings.group "Workers" do
      setting :workers,
              type: Types::Workers.new(0..1024), default: :auto, development: 1, unit: "processes",
              resolve: ->(workers, _) { workers == :auto ? CPUs.count : workers },
              flags: %w[-w --workers], argument: "N", env: "WEB_CONCURRENCY", meant: { 0 => 1 },
              help: "How many workers serve requests. auto: one per CPU, or fewer if memory is short.",
              notes: <<~MARKDOWN,
                `:auto` counts the CPUs that the server may be scheduled on, or takes the control group's CPU quota
                (version 1 or 2), rounded up. Once workers have served 50 requests, Pando knows how much private memory
                a worker needs. If that many workers do not fit into `memory total:` (without it: 80% of the available
                memory), Pando runs fewer. The event `workers.scaled` and `pando status` say how many, and why.
                [More](memory.md#how-many-workers).

                With `workers 0` Pando serves no requests; only the [nodes](swarm.md) run. But `WEB_CONCURRENCY=0`
                means one worker, because Puma runs a single process then. The same holds for a line of the config file
                that passes the variable on.
              MARKDOWN
              example: "workers 4"

      setting :rollout_surge,
              type: Types::Whole.new(0..1024), default: 1, unit: "workers", within: :rollout, keyword: :surge,
              help: "How many extra workers may run during a rollout.",
              notes: <<~MARKDOWN,
                With `surge: 1, unavailable: 0` a new worker is ready before Pando asks an old one to leave. With
                `surge: 0, unavailable: 1` memory never exceeds what the configured workers need.
              MARKDOWN
              example: "rollout surge: 1, unavailable: 0",
              check: lambda { |surge, config|
                "cannot be 0 while unavailable: is 0" if (surge + config.rollout_unavailable).zero?
              }

      setting :rollout_unavailable,
              type: Types::Whole.new(0..1024), default: 0, unit: "workers", within: :rollout, keyword: :unavailable,
              help: "How many workers may be missing during a rollout."

      setting :rollout_canary,
              type: Types::Canary.new, default: :auto, development: false, within: :rollout, keyword: :canary,
              flags: %w[--canary], argument: "auto|off|REQUESTS,SECONDS,LONGEST",
              help: "What the first worker of a new generation must do before Pando replaces the others.",
              notes: <<~MARKDOWN,
                The canary serves beside all the old workers, and Pando compares it with them. It must serve `requests`
                requests and run for at least `seconds`. After `longest` seconds, or after two seconds without any
                request, Pando decides on the data that it has. See [canary](canary.md).

                `:auto` is `{ requests: 20, seconds: 10, longest: 30 }`. With `false` the first worker only has to
                become ready.
              MARKDOWN
              example: "rollout canary: { requests: 20, seconds: 10, longest: 30 }"

      setting :rollout_safe_paths,
              type: Types::Texts.new("a list of paths such as [\"/\", \"/products\"]", pattern: %r{\A/[!-~]*\z}),
              default: [].freeze, within: :rollout, keyword: :safe_paths,
              help: "Paths that a canary may request from itself when no client sends requests.",
              notes: <<~MARKDOWN,
                A quiet server has no traffic by which Pando could judge a canary. Then the canary sends itself a GET
                for each of these paths. If a response has a status of 500 or more, or does not come, Pando discards
                the generation. Name only paths whose GET changes nothing. Pando sends no request that you do not name
                here. [More](canary.md#a-quiet-server).
              MARKDOWN
              example: 'rollout safe_paths: ["/", "/products"]'

      setting :self_test,
              type: Types::OrOff.new(Types::Text.new("a method and a path such as GET /up",
                                                     %r{\A[A-Z]{1,16} /[!-~]*\z})), default: nil,
              rails: "GET /up", rails_development: nil,
              flags: %w[--self-test], argument: "REQUEST",
              help: "A request that each new worker sends itself before it takes traffic.",
              notes: <<~MARKDOWN,
                The request runs through the whole application, with the usual `timeout`. If the response has a status
                of 500 or more, or does not come, the worker does not become ready, and Pando discards a new generation.
                The default of a Rails app applies only if its routes have Rails' own health check at that path.
              MARKDOWN
              example: 'self_test "GET /up"'

      setting :oom_score_adj,
              type: Types::OrOff.new(Types::Whole.new(0..1000)), default: 100,
              help: "How much sooner than the monitor the kernel kills a worker when memory runs out.",
              notes: <<~MARKDOWN,
                Pando writes this value to `/proc/PID/oom_score_adj` of each worker, see proc(5). The reactor's value
                lies half way between the monitor's and this one, the mold's a quarter of the way. Pando leaves the
                monitor's own value alone, because only root may lower it. `false` leaves all processes alone.
              MARKDOWN
              example: "oom_score_adj 300"
    end
  end
end
