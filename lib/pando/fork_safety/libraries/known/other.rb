# frozen_string_literal: true

# Schedulers, middlewares, circuit breakers, native libraries.
Pando::ForkSafety::Libraries::Known.define do
  describe "semian", constant: "Semian", tested: true do
    handled note: "It counts the processes that use a resource, and a child is not counted. Before the fork Pando " \
                  "unregisters what its adapters (Net::HTTP, redis and so on) have registered; parent and child " \
                  "register again with the next use, each with a closed circuit. What your code has registered " \
                  "itself stays as it is: if it has a `quota`, register it in after_worker_fork.",
            source: "https://github.com/Shopify/semian/blob/v0.28.4/ext/semian/resource.c"
    before_fork { Semian.consumers.each_key { |name| Semian.unregister(name) } }
  end

  describe "async", constant: "Async::Scheduler", tested: true do
    fine note: "A scheduler ends with its block: at a fork between two requests there is none. Before 2.35.0 a " \
               "child of a running scheduler keeps it.",
         source: "https://github.com/socketry/async/pull/437"
  end

  describe "ruby-vips", constant: "Vips::Operation", tested: true do
    limits_reforking note: "After a fork libvips waits for threads that the child lacks: an operation hangs. A " \
                           "worker that has run one is not promoted; run none while the app is loaded.",
                     source: "https://github.com/libvips/ruby-vips/issues/396"
    threads(/\Alibvips worker\z/, unsafe: true)
    unsafe_after "Vips::Operation", :call, singleton: true, because: "libvips was used, whose threads no child has"
  end

  describe "mini_racer", constant: "MiniRacer::Context", tested: true do
    native_threads = -> { Pando::ForkSafety::Libraries::Threads.names.any? { |name| name.start_with?("V8 ") } }
    refused since: "0.18.0", used: native_threads,
            note: "V8 runs threads of its own, unless it is set to use none. A child lacks them, and JavaScript hangs.",
            advice: "MiniRacer::Platform.set_flags!(:single_threaded) before the first MiniRacer::Context, and " \
                    'prepared_library "mini_racer"',
            source: "https://github.com/rubyjs/mini_racer#fork-safety"
    refused before: "0.18.0", used: -> { ObjectSpace.each_object(MiniRacer::Context).any? },
            note: "A child that uses a context of its parent crashes, in V8's single-threaded mode too (0.16.0).",
            advice: "update mini_racer to 0.18.0",
            source: "https://github.com/rubyjs/mini_racer#fork-safety"
  end

  describe "ffi", constant: "FFI::Function", tested: true do
    fine since: "1.17.1",
         note: "The thread that runs callbacks is started again in a child.",
         source: "https://github.com/ffi/ffi/blob/v1.17.1/CHANGELOG.md"
  end

  describe "rufus-scheduler", constant: "Rufus::Scheduler", tested: true do
    refused used: -> { ObjectSpace.each_object(Rufus::Scheduler).any? { |one| one.up? && one.thread&.alive? } },
            note: "A child lacks the scheduler's thread, and two processes that have it would run each job twice.",
            advice: "run it in a process of its own: service(:scheduler) { |service| scheduler = " \
                    "Rufus::Scheduler.new; …; service.wait(60) until service.stopping? }",
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
