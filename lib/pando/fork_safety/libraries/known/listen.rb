# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "listen" do
  yours note: "A child lacks its threads, and hears of no change.",
        advice: "listen in no production environment, or in after_worker_fork",
        source: "https://github.com/guard/listen#issues--limitations"
end
