# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "sentry-ruby" do
  fine since: "5.2.0",
       note: "Its threads are started again in a child when there is something to send.",
       source: "https://github.com/getsentry/sentry-ruby/blob/5.2.0/sentry-ruby/lib/sentry/session_flusher.rb"
end
