# frozen_string_literal: true

module Pando
  class Config
    # How much memory there may be.
    Settings.group "Memory" do
      size = Types::OrOff.new(Types::Bytes.new((8 * (1024**2))..))

      setting :memory_worker,
              type: size, default: nil, unit: "bytes",
              within: :memory, keyword: :worker, flags: %w[--memory-worker], argument: "SIZE",
              help: "A worker that has more private memory than this is replaced after its request.",
              notes: "Private is what the worker alone has. What it shares with its mold and the other workers does " \
                     "not count: it would not come back.",
              example: "memory worker: 512.mb, hard: 1.gb, total: 80.percent"

      setting :memory_hard,
              type: size, default: nil, unit: "bytes", within: :memory, keyword: :hard,
              check: lambda { |hard, config|
                worker = config.memory_worker or next
                "must be more than worker:, #{size.write(worker)}, but is #{size.write(hard)}" if hard && hard <= worker
              },
              help: "A worker that gets beyond this is killed in the middle of its request.",
              notes: "The client gets 502, and the request is not tried again, for it may have been the cause. " \
                     "Looked at four times a second. A worker beyond it that is idle is replaced."

      setting :memory_total,
              type: Types::OrOff.new(Types::ShareOfMemory.new((64 * (1024**2))..)), default: nil, unit: "bytes",
              within: :memory, keyword: :total,
              resolve: ->(total, _) { total && Types::ShareOfMemory.of(total, Sys::Memory.limit) },
              help: "When all processes together take more than this, the worker with most private memory is replaced.",
              notes: "The sum of PSS, so that nothing counts twice. A share is of the control group's limit, or of " \
                     "the machine's memory where there is none."

      setting :memory_group,
              type: Types::OrOff.new(Types::Whole.new(50..100)), default: 85, unit: "percent of its limit",
              within: :memory, keyword: :group,
              help: "When the control group has filled this much of its memory limit, likewise.",
              notes: "Before the kernel's OOM killer picks a process. Of versions 1 and 2, and also of a group " \
                     "around ours, as in a container. Files in the page cache that nobody has read for a while do " \
                     "not count. Without a limit the setting does nothing.",
              example: "memory group: 90"

      setting :buffer_memory,
              type: Types::ShareOfMemory.new((1024**2)..), default: "10%", unit: "bytes",
              resolve: ->(most, _) { Types::ShareOfMemory.of(most, Sys::Memory.limit) },
              help: "What the reactor keeps in memory for its clients, heads, bodies and answers together.",
              notes: "A share is of the control group's limit, or of the machine's memory where there is none. When " \
                     "three quarters are full, no head grows (503), bodies and answers go to the spool; when all is, " \
                     "the slowest request that is still being read is refused for a new one. A spool in a tmpfs " \
                     "counts too.",
              example: "buffer_memory 64.mb"

      setting :memory_pressure,
              type: Types::OrOff.new(Types::Whole.new(1..100)), default: nil, unit: "percent of the time",
              within: :memory, keyword: :pressure,
              help: "When somebody has waited for memory this much of the last ten seconds, likewise.",
              notes: "Linux' pressure stall information (PSI, `some avg10`) of the control group or of the machine, " \
                     "whichever is more. " \
                     "Without it in the kernel the setting does nothing."
    end
  end
end
