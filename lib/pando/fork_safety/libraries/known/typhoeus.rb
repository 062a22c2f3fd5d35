# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "typhoeus" do
  fine since: "0.7.1",
       note: "A child does not use the handles, and so the connections, of its parent's pool.",
       source: "https://github.com/typhoeus/typhoeus/pull/426"
  yours before: "0.7.1",
        note: "Parent and child share the connections of the pool.",
        advice: "after_mold_fork { Typhoeus::Pool.clear } and the same in after_worker_fork",
        source: "https://github.com/typhoeus/typhoeus/pull/426"
end
