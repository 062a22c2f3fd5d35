# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "opentelemetry-metrics-sdk" do
  fine since: "0.7.1",
       note: "The thread that sends metrics is started again in a child.",
       source: "https://github.com/open-telemetry/opentelemetry-ruby/blob/main/metrics_sdk/CHANGELOG.md (0.7.1)"
end
