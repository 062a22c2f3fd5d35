# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "airbrake-ruby" do
  fine since: "1.0.3",
       note: "Its threads are started again in a child when there is something to send.",
       source: "https://github.com/airbrake/airbrake-ruby/commit/ff88d3f"
end
