# frozen_string_literal: true

module Pando
  class Config
    # When workers become molds, and what their children are given.
    Settings.group "Reforking" do
      by_itself = ->(config) { config.refork == :auto }

      setting :refork,
              type: Types::Refork.new, default: :auto, development: false,
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
              within: :refork, keyword: :failures, serves: lambda(&:refork),
              help: "After so many that came to nothing in a row, reforking is suspended.",
              notes: "Until a release is reloaded, or `pando refork --force` tries again.",
              example: "refork :auto, failures: 5"

      setting :refork_trainee,
              type: Types::Truth.new, default: true, within: :refork, keyword: :trainee,
              help: "Whether one worker is given requests before the others until the first three reforks.",
              notes: "So it warms up soon, and the others need not do so by themselves. Whoever is busy is passed " \
                     "over: no request waits for it beside an idle worker. Where Pando reforks by itself only, and " \
                     "with `jit :trainee` ([more](reforking.md#the-trainee)).",
              example: "refork :auto, trainee: false"

      setting :jit,
              type: Types::OrOff.new(Types::Choice.new(:all, :trainee)), default: nil,
              flags: %w[--jit], argument: "all|trainee|off",
              help: "Whether YJIT is enabled once the application is loaded: in all workers, or in the trainee.",
              notes: "`:trainee`: until the first refork only one worker compiles, then all of them have what it has " \
                     "compiled. Takes Ruby 3.3 or newer, with YJIT built in and not enabled from the start. `false` " \
                     "leaves Ruby alone: YJIT is what RUBYOPT, RUBY_YJIT_ENABLE or the application make of it.",
              example: "jit :trainee",
              check: lambda { |jit, config|
                next unless jit == :trainee
                next if config.default?(:refork)
                next "trainee needs reforking, and refork is false" if config.refork == false

                "trainee needs one, and refork trainee: is false" unless config.refork_trainee
              }

      setting :refork_prefault,
              type: Types::Prefault.new, default: true, within: :refork, keyword: :prefault,
              flags: %w[--prefault], argument: "on|off|BYTES,MILLISECONDS",
              resolve: ->(prefault, _) { prefault == true ? Types::Prefault::DEFAULT : prefault },
              help: "Whether a new worker is given its own copies of the pages that others have written to.",
              notes: "Before it serves, and at most so many bytes, for at most so many milliseconds of " \
                     "CPU time. `true` is `{ bytes: 64.mb, milliseconds: 30 }`. Needs Linux 5.14. " \
                     "[More](reforking.md#prefault).",
              example: "refork :auto, prefault: { bytes: 32.mb, milliseconds: 20 }"

      setting :refork_reconnect,
              type: Types::Truth.new, default: true, within: :refork, keyword: :reconnect,
              help: "Whether a reforked worker connects to the databases of ActiveRecord before it serves.",
              notes: "To those that the worker was connected to that its mold was forked from. It waits for half a " \
                     "second at most. [More](reforking.md#connections).",
              example: "refork :auto, reconnect: false"

      setting :refork_prefer,
              type: Types::Choice.new(:balanced, :memory, :cpu), default: :balanced, within: :refork, keyword: :prefer,
              serves: by_itself,
              help: "What `refork :auto` would rather spend, where memory and CPU time can be had for each other.",
              notes: "`:memory` saves more memory and takes more CPU time for it, `:cpu` is sparing of that. " \
                     "[The rates](reforking.md#the-price).",
              example: "refork :auto, prefer: :memory"
    end
  end
end
