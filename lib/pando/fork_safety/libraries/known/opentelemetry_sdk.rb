# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "opentelemetry-sdk" do
  fine since: "0.12.1",
       note: "The thread that sends spans is started again in a child.",
       source: "https://github.com/open-telemetry/opentelemetry-ruby/blob/main/sdk/CHANGELOG.md (0.12.1)"
end
