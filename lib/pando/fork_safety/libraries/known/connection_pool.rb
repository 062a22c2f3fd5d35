# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "connection_pool" do
  fine since: "2.4.0",
       note: "A child drops the pool's connections and calls their `close`. Where that says goodbye to the server " \
             "(pg, mysql2) the parent's connection ends too: close those before the fork.",
       source: "https://github.com/mperham/connection_pool/blob/v3.0.2/lib/connection_pool/fork.rb, Changes.md"
  yours before: "2.4.0",
        note: "A child goes on with its parent's connections.",
        advice: "before_fork { POOL.reload(&:close) }, or update it",
        source: "https://github.com/mperham/connection_pool/pull/166"
end
