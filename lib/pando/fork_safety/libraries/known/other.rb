# frozen_string_literal: true

# Schedulers, middlewares, circuit breakers, native libraries.
Pando::ForkSafety::Libraries::Known.define do
  describe "semian", constant: "Semian", tested: true do
    handled note: "It counts the processes that use a resource, and does not count a child. Before the fork, Pando " \
                  "unregisters what its adapters (Net::HTTP, redis and so on) have registered. Parent and child " \
                  "register again on the next use, each with a closed circuit. Pando leaves alone what your own code " \
                  "has registered. If that has a `quota`, register it in after_worker_fork.",
            source: "https://github.com/Shopify/semian/blob/v0.28.4/ext/semian/resource.c"
    before_fork { Semian.consumers.each_key { |name| Semian.unregister(name) } }
  end

  describe "async", constant: "Async::Scheduler", tested: true do
    fine note: "A scheduler ends with its block, so there is none at a fork between two requests. Before 2.35.0, a " \
               "child of a running scheduler keeps the scheduler.",
         source: "https://github.com/socketry/async/pull/437"
  end

  describe "ruby-vips", constant: "Vips::Operation", tested: true do
    limits_reforking note: "After a fork, libvips waits for threads that the child lacks, and an operation hangs. " \
                           "Pando does not promote a worker that has run one. Run none while the app is loaded, " \
                           "and process images in jobs or in a pool of their own.",
                     source: "https://github.com/libvips/ruby-vips/issues/396"
    unsafe_threads(/\Alibvips worker\z/)
    unsafe_after "Vips::Operation", :call, singleton: true, because: "libvips was used, and no child has its threads"
  end

  describe "mini_racer", constant: "MiniRacer::Context", tested: true do
    native_threads = -> { Pando::ForkSafety::Libraries::Threads.names.any? { |name| name.start_with?("V8 ") } }
    refused since: "0.18.0", used: native_threads,
            note: "V8 runs threads of its own, unless it is set to use none. A child lacks them, and JavaScript " \
                  "hangs.",
            advice: "Call MiniRacer::Platform.set_flags!(:single_threaded) before the first MiniRacer::Context, and " \
                    'add prepared_library "mini_racer" to the config file.',
            source: "https://github.com/rubyjs/mini_racer#fork-safety"
    refused before: "0.18.0", used: -> { ObjectSpace.each_object(MiniRacer::Context).any? },
            note: "A child that uses a context of its parent crashes, even in V8's single-threaded mode (0.16.0).",
            advice: "Update mini_racer to 0.18.0.",
            source: "https://github.com/rubyjs/mini_racer#fork-safety"
  end

  describe "ffi", constant: "FFI::Function", tested: true do
    fine since: "1.17.1",
         note: "The thread that runs callbacks starts again in a child.",
         source: "https://github.com/ffi/ffi/blob/v1.17.1/CHANGELOG.md"
  end

  describe "rufus-scheduler", constant: "Rufus::Scheduler", tested: true do
    refused used: -> { ObjectSpace.each_object(Rufus::Scheduler).any? { |one| one.up? && one.thread&.alive? } },
            note: "A child lacks the scheduler's thread. If two processes had the thread, each would run every job.",
            advice: "Run it in a process of its own: service(:scheduler) { |service| scheduler = " \
                    "Rufus::Scheduler.new; …; service.wait(60) until service.stopping? }.",
            source: "https://github.com/jmettraux/rufus-scheduler#advanced-lock-schemes"
  end

  describe "rack-timeout", constant: "Rack::Timeout", tested: true do
    fine note: "Its thread starts again with the first request in a child. You can leave rack-timeout out: Pando's " \
               "own `timeout` does the same without a thread, and also ends a request that Ruby cannot interrupt.",
         source: "https://github.com/zombocom/rack-timeout/blob/main/lib/rack/timeout/support/scheduler.rb"
    revives_threads at: %r{/rack/timeout/support/scheduler\.rb:\d+\z}
  end

  describe "rack-mini-profiler", constant: "Rack::MiniProfiler", tested: true do
    handled note: "In each child, Pando restarts the thread that removes old results from its store.",
            source: "https://github.com/MiniProfiler/rack-mini-profiler/blob/master/lib/mini_profiler/storage/" \
                    "memory_store.rb"
    in_child do
      store = Rack::MiniProfiler.config.storage_instance
      if store.respond_to?(:initialize_cleanup_thread)
        store.initialize_cleanup_thread
      elsif store.is_a?(Rack::MiniProfiler::FileStore) # its files stay
        path, expiry = %i[@path @expires_in_seconds].map { |name| store.instance_variable_get(name) }
        store.send(:initialize, { path: path, expires_in: expiry })
      end
    end
    revives_threads at: %r{/lib/mini_profiler/(?:storage/\w+|snapshots_transporter)\.rb:\d+\z}
  end
end
