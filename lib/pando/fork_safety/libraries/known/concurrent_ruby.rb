# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "concurrent-ruby" do
  fine since: "1.1.7",
       note: "Pools, timers and Async start anew in a child; what they had not done by then is dropped there.",
       source: "https://github.com/ruby-concurrency/concurrent-ruby/blob/v1.1.7/CHANGELOG.md"
  fine since: "1.0.3", before: "1.1.7",
       note: "Pools and timers start anew in a child; Async does not.",
       source: "https://github.com/ruby-concurrency/concurrent-ruby/blob/v1.1.7/CHANGELOG.md"
  revives_threads at: %r{/concurrent-ruby[^/]*/lib/concurrent-ruby/concurrent/}
end
