# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "prometheus-client" do
  fine since: "1.0.0",
       note: "Metrics in memory are counted by process; DirectFileStore opens a file for each.",
       source: "https://github.com/prometheus/client_ruby/blob/v1.0.0/lib/prometheus/client/data_stores/README.md"
end
