# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "datadog" do
  fine since: "2.3.0",
       note: "Its threads are started again in a child.",
       source: "https://github.com/DataDog/dd-trace-rb/commit/b55c33fc04"
  fine before: "2.3.0",
       note: "The tracer's threads are started again in a child, the profiler is not.",
       source: "https://github.com/DataDog/dd-trace-rb/blob/v2.0.0/lib/datadog/core/workers/async.rb"
end
