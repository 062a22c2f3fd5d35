# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "ddtrace" do
  fine since: "1.0.0",
       note: "The tracer's threads are started again in a child, the profiler is not.",
       source: "https://github.com/DataDog/dd-trace-rb/blob/v1.0.0/lib/datadog/core/workers/async.rb"
end
