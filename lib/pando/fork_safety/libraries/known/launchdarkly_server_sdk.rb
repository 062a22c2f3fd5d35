# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "launchdarkly-server-sdk" do
  yours since: "8.10.0",
        note: "A child lacks its threads.",
        advice: "after_worker_fork { LD_CLIENT.postfork }",
        source: "https://github.com/launchdarkly/ruby-server-sdk/pull/319"
  yours before: "8.10.0",
        note: "A child lacks its threads.",
        advice: "make the client in after_worker_fork",
        source: "https://github.com/launchdarkly/ruby-server-sdk/pull/319"
end
