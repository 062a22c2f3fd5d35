# frozen_string_literal: true

# Feature flags, circuit breakers, native libraries.
Pando::ForkSafety::Libraries::Known.define do
  describe "launchdarkly-server-sdk", constant: "LaunchDarkly::LDClient" do
    yours since: "8.10.0",
          note: "A child lacks its threads.",
          advice: "after_worker_fork { LD_CLIENT.postfork }",
          source: "https://github.com/launchdarkly/ruby-server-sdk/pull/319"
    yours before: "8.10.0",
          note: "A child lacks its threads.",
          advice: "make the client in after_worker_fork",
          source: "https://github.com/launchdarkly/ruby-server-sdk/pull/319"
  end

  describe "flipper", constant: "Flipper::Poller" do
    fine since: "0.26.1",
         note: "The thread that fetches is started again in a child.",
         source: "https://github.com/flippercloud/flipper/blob/v1.3.0/lib/flipper/poller.rb"
  end

  describe "semian", constant: "Semian" do
    yours note: "Its tickets are counted by process, and a child believes that it has its parent's.",
          advice: "after_worker_fork { Semian.unregister_all_resources }",
          source: "https://github.com/Shopify/semian/blob/main/README.md"
  end

  describe "async", constant: "Async::Scheduler" do
    fine since: "2.35.0",
         note: "A child of a running scheduler leaves it behind.",
         source: "https://github.com/socketry/async/pull/437"
  end

  describe "ruby-vips", constant: "Vips::Operation" do
    handled note: "After a fork libvips waits for threads that the child lacks: an operation hangs. The first one that " \
                  "a worker runs rules it out as the next mold; run none while the app is loaded.",
            source: "https://github.com/libvips/ruby-vips/issues/396"
    threads(/\Alibvips worker\z/, unsafe: true)
    unsafe_after "Vips::Operation", :call, singleton: true, because: "libvips was used, whose threads no child has"
  end

  describe "mini_racer", constant: "MiniRacer::Context" do
    yours since: "0.6.1",
          note: "V8 runs threads of its own, unless it is set to use none.",
          advice: "MiniRacer::Platform.set_flags!(:single_threaded) before the first MiniRacer::Context",
          source: "https://github.com/rubyjs/mini_racer#fork-safety"
  end

  describe "ffi", constant: "FFI::Function" do
    fine since: "1.17.1",
         note: "The thread that runs callbacks is started again in a child.",
         source: "https://github.com/ffi/ffi/blob/v1.17.1/CHANGELOG.md"
  end
end
