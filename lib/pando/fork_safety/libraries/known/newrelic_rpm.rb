# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "newrelic_rpm" do
  fine since: "3.8.0",
       note: "The first request in a child starts its thread again.",
       source: "https://github.com/newrelic/newrelic-ruby-agent/blob/dev/CHANGELOG.md (3.8.0)"
end
