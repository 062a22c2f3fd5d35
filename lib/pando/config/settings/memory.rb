# frozen_string_literal: true

module Pando
  class Config
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
              resolve: ->(total, _) { total && Types::ShareOfMemory.of(total, Sys::Memory.limit) },
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
              resolve: ->(most, _) { Types::ShareOfMemory.of(most, Sys::Memory.limit) },
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
  end
end
