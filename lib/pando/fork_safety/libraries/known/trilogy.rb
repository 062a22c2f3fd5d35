# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "trilogy" do
  fine through: %w[activerecord sequel],
       note: "What manages the connections keeps them apart.",
       source: "https://github.com/rails/rails/blob/v7.1.0/activerecord/lib/active_record/connection_adapters/trilogy_adapter.rb"
  yours since: "2.4.0",
        note: "It does not notice a fork.",
        advice: "after_mold_fork { CLIENT.discard! } and the same in after_worker_fork; connect again on the next use",
        source: "https://github.com/trilogy-libraries/trilogy/blob/main/CHANGELOG.md (2.4.0, #65)"
  yours before: "2.4.0",
        note: "It does not notice a fork.",
        advice: "before_fork { CLIENT.close }, and connect again on the next use",
        source: "https://github.com/trilogy-libraries/trilogy/blob/main/CHANGELOG.md (2.4.0, #65)"
end
