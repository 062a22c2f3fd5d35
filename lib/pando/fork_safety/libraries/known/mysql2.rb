# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "mysql2" do
  fine through: %w[activerecord sequel],
       note: "What manages the connections keeps them apart.",
       source: "https://github.com/rails/rails/blob/v7.0.0/activerecord/lib/active_record/connection_adapters/mysql2_adapter.rb"
  yours note: "Up to 0.5.7 it does not notice a fork, and a connection that a child closes or forgets is closed at " \
              "the server too.",
        advice: "before_fork { CLIENT.close }, and connect again on the next use",
        source: "https://github.com/brianmario/mysql2#fork-safety and /commit/cb66da4"
end
