# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "message_bus" do
  yours note: "A child lacks the thread that waits for messages.",
        advice: "after_worker_fork { MessageBus.after_fork }",
        source: "https://github.com/discourse/message_bus#forkingthreading-app-servers"
end
