# frozen_string_literal: true

module Pando
  class Config
    # When a worker becomes a mold, and what the workers forked from it get.
    Settings.group "Reforking" do
      by_itself = ->(config) { config.refork == :auto }

      setting :refork,
              type: Types::Refork.new, default: :auto, development: false,
              flags: %w[--refork], argument: "auto|manual|off|N,N,...",
              help: "When a warm worker forks the mold of the next generation.",
              notes: <<~MARKDOWN,
                - `:auto` weighs the memory that a refork saves against the CPU time that it takes. Pando measures both
                  ([how](reforking.md)).
                - `after: [500, 750, 1000]` reforks when the worker with the most requests has served 500. The next
                  generation serves 750, and each one after that 1000: the last number repeats, unless `false` (`off` on
                  the command line) ends the list.
                - `:manual` reforks only when you order it: with `pando refork` or SIGUSR2.
                - `false` never reforks.
              MARKDOWN
              example: "refork after: [500, 750, false]",
              options: [
                Setting::Option.new(name: :after, type: Types::Refork::After.new, default: nil,
                                    help: "The number of requests after which each generation is replaced.")
              ]

      setting :refork_failures,
              type: Types::OrOff.new(Types::Whole.new(1..1000)), default: 5, unit: "reforks",
              within: :refork, keyword: :failures, serves: lambda(&:refork),
              help: "Suspend reforking after this many failed reforks in a row.",
              notes: "A successful reload or `pando refork --force` lifts the suspension.",
              example: "refork :auto, failures: 5"

      setting :jit,
              type: Types::OrOff.new(Types::Choice.new(:all, :trainee)), default: nil,
              flags: %w[--jit], argument: "all|trainee|off",
              help: "Enable YJIT once the application is loaded: in all workers, or only in one, the trainee.",
              notes: <<~MARKDOWN,
                With `:trainee` only one worker compiles until the first refork, and gets requests before the others
                ([more](reforking.md#the-trainee)). After that all workers inherit its compiled code. The setting needs Ruby 3.3 or newer, with YJIT built in and not enabled from the start.
                With `false` Pando does not touch YJIT: RUBYOPT, RUBY_YJIT_ENABLE or the application decide.
              MARKDOWN
              example: "jit :trainee",
              check: lambda { |jit, config|
                next unless jit == :trainee && !config.default?(:refork)

                ":trainee needs reforking, but refork is false" if config.refork == false
              }

      setting :refork_prefault,
              type: Types::Prefault.new, default: true, within: :refork, keyword: :prefault,
              flags: %w[--prefault], argument: "on|off|BYTES,MILLISECONDS",
              resolve: ->(prefault, _) { prefault == true ? Types::Prefault::DEFAULT : prefault },
              help: "Give a new worker its own copies of the memory pages that other workers have written to.",
              notes: <<~MARKDOWN,
                Pando does this before the worker serves. It copies at most `bytes`, for at most `milliseconds` of CPU
                time. `true` is `{ bytes: 64.mb, milliseconds: 30 }`. Prefault needs Linux 5.14 or newer.
                [More](reforking.md#prefault).
              MARKDOWN
              example: "refork :auto, prefault: { bytes: 32.mb, milliseconds: 20 }"

      setting :refork_reconnect,
              type: Types::Truth.new, default: true, within: :refork, keyword: :reconnect,
              help: "Whether a reforked worker connects to its ActiveRecord databases before it serves.",
              notes: <<~MARKDOWN,
                It connects to each database that the source of its mold was connected to: the worker that Pando
                promoted. It waits for at most half a second. [More](reforking.md#connections).
              MARKDOWN
              example: "refork :auto, reconnect: false"

      setting :refork_prefer,
              type: Types::Choice.new(:balanced, :memory, :cpu), default: :balanced, within: :refork, keyword: :prefer,
              serves: by_itself,
              help: "What `refork :auto` saves first: memory, or the CPU time that reforks take.",
              notes: <<~MARKDOWN,
                `:memory` saves more memory and spends more CPU time on it. `:cpu` spends less CPU time and saves less
                memory. [The rates](reforking.md#the-price).
              MARKDOWN
              example: "refork :auto, prefer: :memory"
    end
  end
end
