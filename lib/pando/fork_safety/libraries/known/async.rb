# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "async" do
  fine since: "2.35.0",
       note: "A child of a running scheduler leaves it behind.",
       source: "https://github.com/socketry/async/pull/437"
end
