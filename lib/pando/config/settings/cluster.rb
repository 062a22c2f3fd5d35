# frozen_string_literal: true

module Pando
  class Config
    # How many processes there are and how they are replaced.
    Settings.group "Workers" do
      setting :workers,
              type: Types::Workers.new(0..1024), default: :auto, development: 1, unit: "processes",
              resolve: ->(workers, _) { workers == :auto ? CPUs.count : workers },
              flags: %w[-w --workers], argument: "N", env: "WEB_CONCURRENCY", meant: { 0 => 1 },
              help: "How many workers serve; auto is one for each CPU, or fewer where memory asks for it.",
              notes: "CPUs are those that the server may be scheduled on, or the control group's quota (version 1 " \
                     "and 2), rounded up. Once workers have served 50 requests their private memory is known: if " \
                     "so many do not fit into `memory total:`, or 80% of the memory there is, `workers.scaled` " \
                     "tells how many do, and why; so does `pando status`. [More](memory.md#how-many-workers). " \
                     "0: nothing is served, only the [nodes](swarm.md) run. `WEB_CONCURRENCY=0` means 1, as it is " \
                     "one process to Puma; so does a line that hands the variable on.",
              example: "workers 4"

      setting :rollout_surge,
              type: Types::Whole.new(0..1024), default: 1, unit: "workers", within: :rollout, keyword: :surge,
              help: "How many workers more than configured a rollout may run.",
              notes: "With `surge: 1, unavailable: 0` a new worker is ready before an old one is asked to leave. " \
                     "With `surge: 0, unavailable: 1` memory never exceeds what the configured workers need.",
              example: "rollout surge: 1, unavailable: 0",
              check: lambda { |surge, config|
                "cannot be 0 while unavailable: is 0" if (surge + config.rollout_unavailable).zero?
              }

      setting :rollout_unavailable,
              type: Types::Whole.new(0..1024), default: 0, unit: "workers", within: :rollout, keyword: :unavailable,
              help: "How many workers fewer than configured a rollout may leave."

      setting :rollout_canary,
              type: Types::Canary.new, default: :auto, development: false, within: :rollout, keyword: :canary,
              flags: %w[--canary], argument: "auto|off|REQUESTS,SECONDS,LONGEST",
              help: "What a new generation's first worker must do before the others are replaced.",
              notes: "It serves beside all the old ones: that many requests, for at least `seconds`, and is compared " \
                     "with them; after `longest` seconds, or two without any request, what there is must do " \
                     "(docs/canary.md). `:auto` is `{ requests: 20, seconds: 10, longest: 30 }`. `false`: that it " \
                     "comes up is enough.",
              example: "rollout canary: { requests: 20, seconds: 10, longest: 30 }"

      setting :rollout_safe_paths,
              type: Types::Texts.new("a list of paths such as [\"/\", \"/products\"]", pattern: %r{\A/[!-~]*\z}),
              default: [].freeze, within: :rollout, keyword: :safe_paths,
              help: "Paths that a canary may request from itself when no client requests anything.",
              notes: "A quiet server has no traffic that a canary could be judged by. The canary sends itself a GET " \
                     "for each of these paths; a status of 500 or more, or no answer, discards its generation. Name " \
                     "only paths whose GET changes nothing: Pando never replays a request that is not named here. " \
                     "[More](canary.md#a-quiet-server).",
              example: 'rollout safe_paths: ["/", "/products"]'

      setting :self_test,
              type: Types::OrOff.new(Types::Text.new("a method and a path such as GET /up",
                                                     %r{\A[A-Z]{1,16} /[!-~]*\z})), default: nil,
              rails: "GET /up", rails_development: nil,
              flags: %w[--self-test], argument: "REQUEST",
              help: "A request that each new worker sends itself before it takes traffic.",
              notes: "Through the whole application, with the deadline of any request. A status of 500 or more, or " \
                     "none, and the worker does not become ready: a new generation is discarded. The default of a " \
                     "Rails app holds where its routes have Rails' own health check at that path.",
              example: 'self_test "GET /up"'

      setting :oom_score_adj,
              type: Types::OrOff.new(Types::Whole.new(0..1000)), default: 100,
              help: "How much sooner than the monitor the kernel kills a worker when memory runs out.",
              notes: "Written to `/proc/PID/oom_score_adj` of each worker, see proc(5). The reactor gets half of " \
                     "it, the mold a quarter, above what the monitor has: that is left as it is, for only root may " \
                     "lower it. `false` leaves all alone.",
              example: "oom_score_adj 300"
    end
  end
end
