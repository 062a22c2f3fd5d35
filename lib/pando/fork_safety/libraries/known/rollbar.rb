# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "rollbar" do
  fine note: "It has no thread that lives on: it sends at once, or with a thread for each report.",
       source: "https://github.com/rollbar/rollbar-gem/blob/master/lib/rollbar/delay/thread.rb"
end
