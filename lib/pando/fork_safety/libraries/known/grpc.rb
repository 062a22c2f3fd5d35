# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "grpc" do
  handled since: "1.57.0", given: "GRPC_ENABLE_FORK_SUPPORT=1",
          condition: -> { ENV["GRPC_ENABLE_FORK_SUPPORT"] == "1" },
          note: "Its threads are stopped before the fork and started again in parent and child. Pando sets the " \
                "variable, unless it is set. A process that runs a gRPC server or a stream in both directions is " \
                "not forked.",
          source: "https://github.com/grpc/grpc/pull/33430"
  yours since: "1.57.0",
        note: "Its fork support is switched off: a stub made before the fork does not work in the child.",
        advice: "take GRPC_ENABLE_FORK_SUPPORT out of the environment, or set it to 1",
        source: "https://github.com/grpc/grpc/pull/33430"
  yours before: "1.57.0",
        note: "A process whose parent has used it cannot: the call raises, or hangs in old versions.",
        advice: "update it to 1.57.0; or make no call before the fork, and set `refork false`",
        source: "https://github.com/grpc/grpc/pull/16332"
  threads(/\A(?:grpc_global_tim|default-executo|resolver-execut|event_engine)\z/)
  before_fork { GRPC.prefork }
  in_parent { GRPC.postfork_parent }
  in_child { GRPC.postfork_child }
end
