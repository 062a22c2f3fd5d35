# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "ethon" do
  fine through: %w[typhoeus],
       note: "Typhoeus keeps its handles apart.",
       source: "https://github.com/typhoeus/typhoeus/pull/426"
  yours note: "A handle that has been used keeps its connection, which parent and child then share.",
        advice: "use a new Ethon::Easy after the fork",
        source: "https://github.com/typhoeus/typhoeus/pull/426"
end
