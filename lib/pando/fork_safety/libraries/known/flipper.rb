# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "flipper" do
  fine since: "0.26.1",
       note: "The thread that fetches is started again in a child.",
       source: "https://github.com/flippercloud/flipper/blob/v1.3.0/lib/flipper/poller.rb"
end
