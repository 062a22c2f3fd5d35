# frozen_string_literal: true

module Pando
  class Config
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
              help: "Whether an HTTP worker defers major GCs, which un-share copy-on-write memory.",
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
