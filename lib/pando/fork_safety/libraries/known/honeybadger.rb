# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "honeybadger" do
  fine since: "4.0.0",
       note: "Its thread is started again in a child when there is something to send.",
       source: "https://github.com/honeybadger-io/honeybadger-ruby/blob/v4.0.0/lib/honeybadger/worker.rb"
end
