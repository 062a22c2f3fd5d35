# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "dalli" do
  fine since: "4.0.0",
       note: "A child makes a connection of its own.",
       source: "https://github.com/petergoldstein/dalli/blob/v4.0.0/CHANGELOG.md"
  fine since: "2.0.4", before: "4.0.0",
       note: "A child makes a connection of its own; the first request of some versions fails (Dalli::NetworkError) " \
             "and is tried again by the client.",
       source: "https://github.com/petergoldstein/dalli/blob/v3.2.8/lib/dalli/protocol/connection_manager.rb"
end
