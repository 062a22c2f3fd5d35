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
                Option.new(name: :after, type: Types::Refork::After.new, default: nil,
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
                ([more](reforking.md#the-trainee)). After that all workers inherit its compiled code. The setting needs
                Ruby 3.3 or newer, with YJIT built in and not enabled from the start. With `false` Pando does not touch
                YJIT: RUBYOPT, RUBY_YJIT_ENABLE or the application decide.
              MARKDOWN
              example: "jit :trainee",
              check: lambda { |jit, config|
                next unless jit == :trainee && !config.default?(:refork)

                ":trainee needs reforking, but refork is false" if config.refork == false
              }

      setting :refork_prefault,
              type: Types::Prefault.new, default: true, within: :refork, keyword: :prefault,
              flags: %w[--prefault], argument: "on|off|BYTES,MILLISECONDS",
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

    # How much memory the processes may use.
    Settings.group "Memory" do
      size = Types::OrOff.new(Types::Bytes.new((8 * (1024**2))..))

      setting :memory_worker,
              type: size, default: nil, unit: "bytes",
              within: :memory, keyword: :worker, flags: %w[--memory-worker], argument: "SIZE",
              help: "Replace a worker with more private memory than this, after its request.",
              notes: <<~MARKDOWN,
                Private memory belongs to one worker alone. Memory that a worker shares with its mold and the other
                workers does not count, because the worker's exit would not free it.
              MARKDOWN
              example: "memory worker: 512.mb, hard: 1.gb, total: 80.percent"

      setting :memory_hard,
              type: size, default: nil, unit: "bytes", within: :memory, keyword: :hard,
              check: lambda { |hard, config|
                worker = config.memory_worker or next
                "must be more than worker:, #{size.write(worker)}, but is #{size.write(hard)}" if hard && hard <= worker
              },
              help: "Kill a worker with more private memory than this, even in the middle of a request.",
              notes: <<~MARKDOWN
                The client gets 502. Pando does not retry the request, because it may have been the cause. Pando checks
                the limit four times a second. An idle worker beyond the limit is replaced, not killed.
              MARKDOWN

      setting :memory_total,
              type: Types::OrOff.new(Types::ShareOfMemory.new((64 * (1024**2))..)), default: nil, unit: "bytes",
              within: :memory, keyword: :total,
              help: "Replace the worker with the most private memory when all processes together use more than this.",
              notes: <<~MARKDOWN
                Pando adds up the PSS of all processes, so that shared memory counts only once. A percentage refers to
                the control group's memory limit, or to the machine's memory if there is no limit.
              MARKDOWN

      setting :memory_group,
              type: Types::OrOff.new(Types::Whole.new(50..100)), default: 85, unit: "percent of its limit",
              within: :memory, keyword: :group,
              help: "Replace the worker with the most private memory when the control group is this full.",
              notes: <<~MARKDOWN,
                So Pando acts before the kernel's OOM killer picks a process. It reads control groups of version 1 and
                2, also enclosing ones, as in a container. Files in the page cache that have not been read for a while
                do not count. Without a memory limit the setting has no effect.
              MARKDOWN
              example: "memory group: 90"

      setting :buffer_memory,
              type: Types::ShareOfMemory.new((1024**2)..), default: "10%", unit: "bytes",
              help: "How much memory the reactor may use for its clients' request heads, bodies and responses.",
              notes: <<~MARKDOWN,
                A percentage refers to the control group's memory limit, or to the machine's memory if there is no
                limit. A spool in a tmpfs counts as memory too.

                When three quarters are in use, a request whose head needs more than 4 KiB gets 503, and new bodies and
                responses go to the spool. When everything is in use, a new request takes the place of the slowest one
                that the reactor is still reading; the slow one gets 503.
              MARKDOWN
              example: "buffer_memory 64.mb"

      setting :memory_pressure,
              type: Types::OrOff.new(Types::Whole.new(1..100)), default: nil, unit: "percent of the time",
              within: :memory, keyword: :pressure,
              help: "Replace the worker with the most private memory when processes wait this often for memory.",
              notes: <<~MARKDOWN
                The value is a percentage of the last ten seconds. Pando reads Linux's pressure stall information (PSI,
                `some avg10`) of the control group and of the machine, and takes the higher figure. On a kernel without
                PSI the setting has no effect.
              MARKDOWN
    end

    # What keeps memory shared between a mold and the processes forked from it.
    Settings.group "Sharing memory" do
      setting :allocator,
              type: Types::Choice.new(:auto, :jemalloc, :glibc), default: :auto,
              flags: %w[--allocator], argument: "auto|jemalloc|glibc",
              help: "Which malloc the application uses.",
              notes: <<~MARKDOWN,
                - `:auto` uses jemalloc if version 5.3 or newer is installed and LD_PRELOAD is not set.
                - `:jemalloc` does the same, and ends the boot with an error if there is no such jemalloc.
                - `:glibc` never loads jemalloc.

                Pando loads jemalloc into molds with LD_PRELOAD. Workers inherit it; programs that the application
                starts do not. Pando respects `MALLOC_CONF`. [More](sharing.md#the-allocator).
              MARKDOWN
              example: "allocator :jemalloc"

      setting :gc_between_requests,
              type: Types::OrOff.new(Types::Whole.new(1..50)), default: 4, unit: "percent of a worker's CPU time",
              within: :gc, keyword: :between_requests,
              help: "How much of its CPU time a worker may spend on minor GCs between two requests.",
              notes: <<~MARKDOWN,
                New objects then use the same few pages again and again, and a large heap stays shared. Pando measures
                what each GC costs. With `false` Ruby alone decides when to collect, in the middle of requests.
                [More](sharing.md#garbage).
              MARKDOWN
              example: "gc between_requests: 2"

      setting :gc_major,
              type: Types::Choice.new(:auto, :postpone, :ruby), default: :auto,
              within: :gc, keyword: :major,
              help: "Whether an HTTP worker defers major GCs, which make shared memory private.",
              notes: <<~MARKDOWN,
                - `:postpone` defers major GCs from the first refork on. The next mold runs the major GC instead. If
                  Ruby wants one in a worker that has grown, Pando replaces the worker. If a worker has grown a lot and
                  could not be replaced, it may run major GCs again.
                - `:auto` is `:postpone` under YJIT, where a major GC costs most, and otherwise `:ruby`.
                - `:ruby` leaves the decision to Ruby.

                Deferral needs Ruby 3.4 or newer, and `between_requests:` must be on. Otherwise Pando defers nothing.
                [More](sharing.md#full-collections).
              MARKDOWN
              example: "gc major: :ruby"

      setting :gc_mold,
              type: Types::OrOff.new(Types::Choice.new(:auto, :promote, :warmup)), default: :auto,
              within: :gc, keyword: :mold,
              help: "How Pando prepares a mold's heap before it forks the first worker from it.",
              notes: <<~MARKDOWN,
                - `:promote` runs the GC until all live objects count as old, so that no worker has to mark them as old
                  on pages of its own.
                - `:warmup` calls Process.warmup of Ruby 3.3 and newer. That also compacts the heap, so that new objects
                  go to fewer of the shared pages. On older Rubies `:warmup` is `:promote`.
                - `:auto` is `:warmup` from Ruby 3.3.6 on. Before 3.3.6 it is `:promote`: in those versions, hashes
                  may not find some of their keys after compaction.
                - `false` does nothing.

                [More](sharing.md#the-mold).
              MARKDOWN
              example: "gc mold: :promote # a native extension cannot handle compaction"

      setting :mold,
              type: Types::Choice.new(:auto, :keep, :release), default: :auto,
              help: "Whether a mold stays alive once its workers serve.",
              notes: <<~MARKDOWN,
                Memory that the workers no longer share with their mold is used by the mold alone.

                - `:keep`: the mold stays.
                - `:release`: the mold exits. When Pando needs a new process, the best worker forks a new mold, as it
                  does when a mold dies.
                - `:auto`: the mold exits only if at least 16 MiB and a tenth of its memory are private, as under YJIT.
                  If Pando needs a mold again within ten minutes, that one stays until the next refork.

                The mold always stays if there are fewer than three workers, if no worker may fork, after a failed
                refork, and with job nodes. [More](sharing.md#letting-the-mold-go).
              MARKDOWN
              example: "mold :keep"
    end
  end
end
