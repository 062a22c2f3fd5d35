# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "excon" do
  fine since: "0.99.0",
       note: "A child makes connections of its own.",
       source: "https://github.com/excon/excon/blob/v0.99.0/changelog.txt"
  yours before: "0.99.0",
        note: "A persistent connection is shared by parent and child.",
        advice: "update it to 0.99.0, or: before_fork { CONNECTION.reset }",
        source: "https://github.com/excon/excon/commit/136ca97"
end
