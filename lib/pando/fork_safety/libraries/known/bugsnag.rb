# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "bugsnag" do
  fine since: "3.0.0",
       note: "Its thread is started again in a child when there is something to send.",
       source: "https://github.com/bugsnag/bugsnag-ruby/commit/61028f11"
end
