# frozen_string_literal: true

# Schedulers, middlewares, circuit breakers, native libraries.
Pando::ForkSafety::Libraries::Known.define do
  describe "semian", constant: "Semian" do
    handled note: "Its tickets are counted by process, and a child would believe that it has its parent's. Pando " \
                  "calls Semian.unregister_all_resources in each child.",
            source: "https://github.com/Shopify/semian/blob/main/README.md"
    in_child { Semian.unregister_all_resources }
  end

  describe "async", constant: "Async::Scheduler" do
    fine since: "2.35.0",
         note: "A child of a running scheduler leaves it behind.",
         source: "https://github.com/socketry/async/pull/437"
  end

  describe "ruby-vips", constant: "Vips::Operation", tested: true do
    limits_reforking note: "After a fork libvips waits for threads that the child lacks: an operation hangs. A " \
                           "worker that has run one is not promoted; run none while the app is loaded.",
                     source: "https://github.com/libvips/ruby-vips/issues/396"
    threads(/\Alibvips worker\z/, unsafe: true)
    unsafe_after "Vips::Operation", :call, singleton: true, because: "libvips was used, whose threads no child has"
  end

  describe "mini_racer", constant: "MiniRacer::Context" do
    refused since: "0.6.1", used: -> { ObjectSpace.each_object(MiniRacer::Context).any? },
            note: "V8 runs threads of its own, which a child lacks, unless it is set to use none.",
            advice: "MiniRacer::Platform.set_flags!(:single_threaded) before the first MiniRacer::Context, and " \
                    'prepared_library "mini_racer"',
            source: "https://github.com/rubyjs/mini_racer#fork-safety"
  end

  describe "ffi", constant: "FFI::Function" do
    fine since: "1.17.1",
         note: "The thread that runs callbacks is started again in a child.",
         source: "https://github.com/ffi/ffi/blob/v1.17.1/CHANGELOG.md"
  end

  describe "rufus-scheduler", constant: "Rufus::Scheduler" do
    refused used: -> { ObjectSpace.each_object(Rufus::Scheduler).any? { |one| one.up? && one.thread&.alive? } },
            note: "A child lacks the scheduler's thread, and two processes that have it would run each job twice.",
            advice: "run it in a process of its own: service(:scheduler) { |service| … }, see docs/cluster.md",
            source: "https://github.com/jmettraux/rufus-scheduler#advanced-lock-schemes"
  end

  describe "rack-timeout", constant: "Rack::Timeout", tested: true do
    fine note: "Its thread starts again with the first request of a child. Pando's own `timeout` does the same " \
               "without a thread, and ends a request that Ruby cannot interrupt: you can leave rack-timeout out.",
         source: "https://github.com/zombocom/rack-timeout/blob/main/lib/rack/timeout/support/scheduler.rb"
    revives_threads at: %r{/rack/timeout/support/scheduler\.rb:\d+\z}
  end

  describe "rack-mini-profiler", constant: "Rack::MiniProfiler", tested: true do
    handled note: "Pando starts the thread again that removes old results from its store.",
            source: "https://github.com/MiniProfiler/rack-mini-profiler/blob/master/lib/mini_profiler/storage/" \
                    "memory_store.rb"
    in_child do
      store = Rack::MiniProfiler.config.storage_instance
      store.initialize_cleanup_thread if store.respond_to?(:initialize_cleanup_thread)
    end
    revives_threads at: %r{/lib/mini_profiler/(?:storage/\w+|snapshots_transporter)\.rb:\d+\z}
  end
end
