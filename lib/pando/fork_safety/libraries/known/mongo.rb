# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "mongo" do
  yours since: "2.13.0",
        note: "A child discards its parent's connections, but the threads that watch the servers are missing there.",
        advice: "before_fork { CLIENT.close }, after_mold_fork { CLIENT.reconnect } and the same in after_worker_fork",
        source: "https://github.com/mongodb/mongo-ruby-driver/pull/2049 and https://github.com/mongodb/mongo-ruby-driver/pull/1918"
end
