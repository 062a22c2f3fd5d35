# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "semian" do
  yours note: "Its tickets are counted by process, and a child believes that it has its parent's.",
        advice: "after_worker_fork { Semian.unregister_all_resources }",
        source: "https://github.com/Shopify/semian/blob/main/README.md"
end
