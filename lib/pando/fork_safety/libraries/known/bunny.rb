# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "bunny" do
  yours note: "Parent and child share the connection, and the child lacks the thread that reads from it.",
        advice: "before_fork { BUNNY.close }, and connect again on the next use",
        source: "https://github.com/ruby-amqp/bunny/blob/main/docs/guides/connecting.md"
end
