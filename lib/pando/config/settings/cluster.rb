# frozen_string_literal: true

module Pando
  class Config
    # How many processes there are and how they are replaced.
    Settings.group "Workers and reforking" do
      setting :workers,
              type: Types::Workers.new(1..1024), default: :auto, unit: "processes",
              resolve: ->(workers, _) { workers == :auto ? CPUs.count : workers },
              flags: %w[-w --workers], argument: "N", env: "WEB_CONCURRENCY",
              help: "How many workers serve; auto is one for each CPU, or fewer where memory asks for it.",
              notes: "CPUs are those that the server may be scheduled on, or the control group's quota (version 1 " \
                     "and 2), rounded up. Once workers have served 50 requests their private memory is known: if " \
                     "so many do not fit into `memory total:`, or 80% of the memory there is, `workers.scaled` " \
                     "tells how many do, and why; so does `pando status`. [More](memory.md#how-many-workers).",
              example: "workers 4"

      setting :refork,
              type: Types::Refork.new, default: :auto,
              flags: %w[--refork], argument: "auto|manual|off|N,N,...",
              help: "When a warm worker becomes the mold of the next generation.",
              notes: "`after: [500, 750, 1000]` reforks when the worker that served most has served 500 requests, " \
                     "the next generation after 750, and from then on after 1000: the last number repeats, unless " \
                     "`false` (`off` on the command line) ends the list. `:auto` decides by measured memory and CPU " \
                     "time ([how](reforking.md)). `:manual` waits for SIGUSR2. `false` never reforks.",
              example: "refork after: [500, 750, false]",
              options: [
                Setting::Option.new(name: :after, type: Types::Refork::After.new, default: nil,
                                    help: "Requests after which each generation is replaced.")
              ]

      setting :refork_failures,
              type: Types::OrOff.new(Types::Whole.new(1..1000)), default: 5, unit: "reforks",
              within: :refork, keyword: :failures,
              help: "After so many that came to nothing in a row, reforking is suspended.",
              notes: "Until a release is reloaded, or `pando refork --force` tries again.",
              example: "refork :auto, failures: 5"

      setting :refork_rho,
              type: Types::Whole.new(1..100), default: 3, within: :refork, keyword: :rho,
              help: "How many percent of memory one percent of CPU must buy, for `refork :auto`.",
              notes: "More: fewer reforks. Fewer: more memory is saved, for more CPU time.",
              example: "refork :auto, rho: 3, floor: 10, ceiling: false, memory: 1.5.gb"

      setting :refork_floor,
              type: Types::Seconds.new(zero: true), default: 10.0, unit: "seconds", within: :refork, keyword: :floor,
              help: "For how long a generation serves before `refork :auto` replaces it."

      setting :refork_ceiling,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds",
              within: :refork, keyword: :ceiling,
              help: "When a generation has served for so long `refork :auto` replaces it, whether that pays or not.",
              check: lambda { |ceiling, config|
                "must be more than floor:" if ceiling && ceiling <= config.refork_floor
              }

      setting :refork_memory,
              type: Types::OrOff.new(Types::ShareOfMemory.new((64 * (1024**2))..)), default: nil, unit: "bytes",
              within: :refork, keyword: :memory,
              resolve: ->(target, _) { target && Types::ShareOfMemory.of(target, Sys::Memory.limit) },
              help: "When workers and mold take more than this, `refork :auto` replaces a generation at any cost.",
              notes: "The sum of PSS. If it saves a twentieth of the memory, and not sooner than `floor:`. A share " \
                     "is of the control group's limit, or of the machine's memory where there is none."

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
              type: Types::Canary.new, default: :auto, within: :rollout, keyword: :canary,
              flags: %w[--canary], argument: "auto|off|REQUESTS,SECONDS,LONGEST",
              help: "What a new generation's first worker must do before the others are replaced.",
              notes: "It serves beside all the old ones: that many requests, for at least `seconds`, and is compared " \
                     "with them; after `longest` seconds what there is must do (docs/canary.md). `:auto` is " \
                     "`{ requests: 20, seconds: 10, longest: 30 }`, and in the environments development and test " \
                     "`{ requests: 20, seconds: 0.5, longest: 3 }`. `false`: that it comes up is enough.",
              example: "rollout canary: { requests: 20, seconds: 10, longest: 30 }"

      setting :self_test,
              type: Types::OrOff.new(Types::Text.new("a method and a path such as GET /up",
                                                     %r{\A[A-Z]{1,16} /[!-~]*\z})), default: nil,
              flags: %w[--self-test], argument: "REQUEST",
              help: "A request that each new worker sends itself before it takes traffic.",
              notes: "Through the whole application, with the deadline of any request. A status of 500 or more, or " \
                     "none, and the worker does not become ready: a new generation is discarded.",
              example: 'self_test "GET /up"'

      setting :oom_score_adj,
              type: Types::OrOff.new(Types::Whole.new(0..1000)), default: 100,
              help: "How much sooner than the monitor and the mold the kernel kills a worker when memory runs out.",
              notes: "Written to `/proc/PID/oom_score_adj` of each worker, see proc(5); `false` leaves it alone.",
              example: "oom_score_adj 300"
    end
  end
end
