# frozen_string_literal: true

module Pando
  class Config
    # What keeps memory shared between a mold and what is forked from it.
    Settings.group "Sharing memory" do
      setting :allocator,
              type: Types::Choice.new(:auto, :jemalloc, :glibc), default: :auto,
              flags: %w[--allocator], argument: "auto|jemalloc|glibc",
              help: "Whose malloc the application uses.",
              notes: "`:auto`: jemalloc where a 5.3 or newer is installed and LD_PRELOAD is not set. It is loaded " \
                     "into molds by LD_PRELOAD and inherited by workers, not by processes that the application " \
                     "starts. `:jemalloc` makes it an error if there is none. `MALLOC_CONF` is respected. " \
                     "[More](sharing.md#the-allocator).",
              example: "allocator :jemalloc"

      setting :gc_between_requests,
              type: Types::OrOff.new(Types::Whole.new(1..50)), default: 1, unit: "percent of a worker's CPU time",
              within: :gc, keyword: :between_requests,
              help: "How much of its time a worker collects young garbage between two requests.",
              notes: "Then the same few pages are used for new objects again and again, and large heaps stay shared. " \
                     "What one collection costs is measured. `false`: Ruby alone decides, in the midst of requests. " \
                     "[More](sharing.md#garbage).",
              example: "gc between_requests: 2"

      setting :gc_major,
              type: Types::Choice.new(:auto, :postpone, :ruby), default: :auto,
              within: :gc, keyword: :major,
              help: "Whether an HTTP worker does without full collections, which make private what it shares.",
              notes: "`:postpone`: from the first refork on the next mold does it, or the worker is replaced when " \
                     "Ruby wants one and the worker has grown; when it has grown much, and nobody has replaced it, " \
                     "Ruby has its way. `:auto`: that under YJIT, where a full collection costs most. `:ruby`: Ruby " \
                     "alone decides. It takes Ruby 3.4 or newer, and `between_requests:`; without them nothing is " \
                     "put off. [More](sharing.md#full-collections).",
              example: "gc major: :ruby"

      setting :gc_mold,
              type: Types::OrOff.new(Types::Choice.new(:auto, :promote, :warmup)), default: :auto,
              within: :gc, keyword: :mold,
              help: "What is done with a mold's heap before the first worker is forked from it.",
              notes: "`:promote` collects until all that lives counts as old, so that no worker has to mark it as " \
                     "such in memory of its own. `:warmup` is Process.warmup of Ruby 3.3 and newer, which compacts " \
                     "the heap as well, so that new objects go to fewer of the pages that are shared; before, it is " \
                     "`:promote`. `:auto`: `:warmup` from Ruby 3.3.6 on, and `:promote` before, where a compacted " \
                     "heap has hashes that do not find some of their keys. [More](sharing.md#the-mold).",
              example: "gc mold: :promote # a native extension does not bear compaction"

      setting :mold,
              type: Types::Choice.new(:auto, :keep, :release), default: :auto,
              help: "Whether a mold stays once its workers serve.",
              notes: "What workers no longer share with it is its alone. `:release`: it ends, and when a process is " \
                     "wanted the best worker forks another one, as it does when a mold dies. `:auto`: only if it has " \
                     "at least 16 MiB and a tenth of its memory for itself, as under YJIT, and if none is missed " \
                     "within ten minutes. It stays where there are fewer than three workers, or none may fork, after " \
                     "a refork that came to nothing, and with job nodes. [More](sharing.md#letting-the-mold-go).",
              example: "mold :keep"

      setting :transparent_huge_pages,
              type: Types::Truth.new, default: true,
              help: "Whether the application's processes may have huge pages.",
              notes: "`true`: as the system has it. `false`: none, whatever the system has, nor in processes that " \
                     "the application starts (PR_SET_THP_DISABLE). [More](sharing.md#huge-and-merged-pages).",
              example: "transparent_huge_pages false"

      setting :same_page_merging,
              type: Types::Truth.new, default: false,
              help: "Whether the kernel may merge pages of the application's processes that are alike (KSM).",
              notes: "For Linux 6.4 and newer, where root has turned KSM on (`/sys/kernel/mm/ksm/run`). Without it " \
                     "nothing happens but `pages.unavailable`. [More](sharing.md#huge-and-merged-pages).",
              example: "same_page_merging true"
    end
  end
end
