# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "pg" do
  fine through: %w[activerecord sequel],
       note: "What manages the connections keeps them apart.",
       source: "https://github.com/rails/rails/blob/v7.0.0/activerecord/lib/active_record/connection_adapters/postgresql_adapter.rb"
  yours note: "It does not notice a fork, and a connection that a child closes or forgets is closed at the server too.",
        advice: "before_fork { DB.finish } and connect again on the next use; in a connection_pool: " \
                "before_fork { POOL.reload(&:finish) }",
        source: "https://github.com/ged/ruby-pg/blob/v1.6.3/ext/pg_connection.c (pgconn_gc_free)"
end
