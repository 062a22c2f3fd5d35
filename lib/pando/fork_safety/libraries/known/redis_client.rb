# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "redis-client" do
  fine since: "0.9.0",
       note: "A child makes a connection of its own.",
       source: "https://github.com/redis-rb/redis-client/blob/v0.9.0/CHANGELOG.md"
  yours before: "0.9.0",
        note: "A child goes on with its parent's connection.",
        advice: "update it to 0.9.0, or: before_fork { REDIS.close }",
        source: "https://github.com/redis-rb/redis-client/blob/v0.9.0/CHANGELOG.md"
end
