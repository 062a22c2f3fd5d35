# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "statsd-instrument" do
  fine since: "3.3.0",
       note: "The thread that sends is started again in a child.",
       source: "https://github.com/Shopify/statsd-instrument/commit/fe5a593"
end
