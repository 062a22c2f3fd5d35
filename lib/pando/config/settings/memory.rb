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
              options: [
                Option.new(name: :after, type: Types::Refork::After.new, default: nil,
                           help: "The number of requests after which each generation is replaced.")
              ]

      setting :refork_failures,
              type: Types::OrOff.new(Types::Whole.new(1..1000)), default: 5, unit: "reforks",
              within: :refork, serves: lambda(&:refork),
              help: "Suspend reforking after this many failed reforks in a row."

      setting :jit,
              type: Types::Truth.new, default: false,
              flags: %w[--jit], argument: "true|false",
              help: "Enable YJIT in all workers, once the application is loaded. false: Ruby alone decides."

      setting :refork_prefault,
              type: Types::Prefault.new, default: true, within: :refork,
              flags: %w[--prefault], argument: "on|off|BYTES,MILLISECONDS",
              help: "Give a new worker its own copies of the memory pages that other workers have written to."

      setting :refork_reconnect,
              type: Types::Truth.new, default: true, within: :refork,
              help: "Whether a reforked worker connects to its ActiveRecord databases before it serves."

      setting :refork_prefer,
              type: Types::Choice.new(:balanced, :memory, :cpu), default: :balanced, within: :refork,
              serves: by_itself,
              help: "What `refork :auto` saves first: memory, or the CPU time that reforks take."
    end

    # How much memory the processes may use.
    Settings.group "Memory" do
      size = Types::OrOff.new(Types::Bytes.new((8 * (1024**2))..))

      setting :memory_worker,
              type: size, default: nil, within: :memory, flags: %w[--memory-worker], argument: "SIZE",
              help: "Replace a worker with more private memory than this, after its request."

      setting :memory_hard,
              type: size, default: nil, within: :memory,
              check: lambda { |hard, config|
                worker = config.memory_worker or next
                "must be more than worker:, #{size.write(worker)}, but is #{size.write(hard)}" if hard && hard <= worker
              },
              help: "Kill a worker with more private memory than this, even in the middle of a request."

      setting :memory_total,
              type: Types::OrOff.new(Types::ShareOfMemory.new((64 * (1024**2))..)), default: nil, within: :memory,
              help: "Replace the worker with the most private memory when all processes together use more than this."

      setting :memory_group,
              type: Types::OrOff.new(Types::Whole.new(50..100)), default: 85, unit: "percent of its limit",
              within: :memory,
              help: "Replace the worker with the most private memory when the control group is this full."

      setting :buffer_memory,
              type: Types::ShareOfMemory.new((1024**2)..), default: "10%", traits: %i[reactor],
              help: "How much memory the reactor may use for its clients' request heads, bodies and responses."

      setting :memory_pressure,
              type: Types::OrOff.new(Types::Whole.new(1..100)), default: nil, unit: "percent of the time",
              within: :memory,
              help: "Replace the worker with the most private memory when processes wait this often for memory."
    end

    # What keeps memory shared between a mold and the processes forked from it.
    Settings.group "Sharing memory" do
      setting :allocator,
              type: Types::Choice.new(:auto, :jemalloc, :glibc), default: :auto,
              flags: %w[--allocator], argument: "auto|jemalloc|glibc",
              help: "Which malloc the application uses."

      setting :gc_between_requests,
              type: Types::OrOff.new(Types::Whole.new(1..50)), default: 4, unit: "percent of a worker's CPU time",
              within: :gc,
              help: "How much of its CPU time a worker may spend on minor GCs between two requests, not counting " \
                    "most of what it takes to free garbage (Ruby 3.3 or newer)."

      setting :gc_major,
              type: Types::Choice.new(:auto, :postpone, :ruby), default: :auto, within: :gc,
              help: "Whether workers defer major GCs, which make shared memory private."

      setting :gc_mold,
              type: Types::OrOff.new(Types::Choice.new(:auto, :promote, :warmup)), default: :auto, within: :gc,
              help: "How Pando prepares a mold's heap before it forks the first worker from it."

      setting :mold,
              type: Types::Choice.new(:auto, :keep, :release), default: :auto,
              help: "Whether a mold stays alive once its workers serve."
    end
  end
end
