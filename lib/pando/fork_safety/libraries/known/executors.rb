# frozen_string_literal: true

require "pando/fork_safety/libraries/concurrent_executors"
require "rbconfig"

# Libraries that do work later, in threads of the same process.
Pando::ForkSafety::Libraries::Known.define do
  describe "concurrent-ruby", constant: "Concurrent::ThreadPoolExecutor", tested: true do
    fine since: "1.1.7",
         note: "In a child, pools, timers and Async start again without the queued tasks; the parent runs those. A " \
               "worker that leaves runs its tasks first, within `stop_timeout`.",
         source: "https://github.com/ruby-concurrency/concurrent-ruby/blob/v1.1.7/CHANGELOG.md"
    fine since: "1.0.3", before: "1.1.7",
         note: "Pools and timers start again in a child; Async does not.",
         source: "https://github.com/ruby-concurrency/concurrent-ruby/blob/v1.1.7/CHANGELOG.md"
    queues count: Pando::ForkSafety::Libraries::ConcurrentExecutors.method(:count),
           names: Pando::ForkSafety::Libraries::ConcurrentExecutors.method(:names)
    revives_threads at: %r{/concurrent-ruby[^/]*/lib/concurrent-ruby/concurrent/}
  end

  describe "timeout", constant: "Timeout", tested: true do
    fine note: "The first Timeout.timeout in a child starts its thread again.",
         source: "https://github.com/ruby/timeout/blob/v0.3.0/lib/timeout.rb"
    ruby_lib = Regexp.escape(RbConfig::CONFIG["rubylibdir"])
    folders = ["/timeout-[^/]+/lib", "/rubygems/vendor/timeout/lib", "\\A#{ruby_lib}"]
    revives_threads at: %r{(#{folders.join("|")})/timeout\.rb:\d+\z}
  end

  describe "activejob", constant: "ActiveJob::QueueAdapters::AsyncAdapter", tested: true do
    fine note: "The async adapter keeps its jobs in an executor of concurrent-ruby. The parent runs them, and a " \
               "worker that leaves runs its jobs first. Jobs with a `wait` beyond `stop_timeout` are dropped and " \
               "named.",
         source: "https://github.com/rails/rails/blob/v8.1.0/activejob/lib/active_job/queue_adapters/async_adapter.rb"
  end

  describe "sucker_punch", constant: "SuckerPunch::Queue", tested: true do
    fine since: "2.0.0",
         note: "Its queues are executors of concurrent-ruby. The parent runs their jobs, and a worker that leaves " \
               "runs its jobs first.",
         source: "https://github.com/brandonhilkert/sucker_punch/blob/master/lib/sucker_punch/queue.rb"
  end
end
