# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "net-http-persistent" do
  fine since: "4.0.2", through: %w[connection_pool],
       note: "Its pool is a ConnectionPool, which drops inherited connections from its version 2.4 on.",
       source: "https://github.com/drbrain/net-http-persistent/blob/v4.0.2/History.txt"
end
