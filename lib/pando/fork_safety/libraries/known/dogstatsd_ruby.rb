# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "dogstatsd-ruby" do
  fine since: "5.3.0",
       note: "The thread that sends is started again in a child.",
       source: "https://github.com/DataDog/dogstatsd-ruby/blob/master/CHANGELOG.md (5.3.0)"
  yours since: "5.0.0", before: "5.3.0",
        note: "A child lacks the thread that sends.",
        advice: "update it to 5.3.0, or make the client in after_worker_fork",
        source: "https://github.com/DataDog/dogstatsd-ruby/blob/master/CHANGELOG.md (5.1.0, known issues)"
end
