# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "redis" do
  fine since: "5.0.5",
       note: "A child makes a connection of its own.",
       source: "https://github.com/redis/redis-rb/blob/v5.0.5/CHANGELOG.md"
  yours since: "5.0.0", before: "5.0.5",
        note: "It does not let go of its parent's connection after a fork.",
        advice: "update it to 5.0.5, or: before_fork { REDIS.close }",
        source: "https://github.com/redis/redis-rb/issues/1157"
  fine since: "3.1.0", before: "5.0.0",
       note: "A child makes a connection of its own, unless `inherit_socket` is set.",
       source: "https://github.com/redis/redis-rb/blob/v4.8.1/CHANGELOG.md (3.1.0, 4.8.1)"
end
