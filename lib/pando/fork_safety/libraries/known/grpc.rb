# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "grpc" do
  switched_on = -> { ENV["GRPC_ENABLE_FORK_SUPPORT"] == "1" }
  handled since: "1.80.0", given: "GRPC_ENABLE_FORK_SUPPORT=1", condition: switched_on,
          note: "Where it was used, its threads are stopped before the fork and started again in parent and child. " \
                "The first call of a child through an inherited stub may fail with GRPC::Unavailable: let it be " \
                "tried again. A worker that runs a gRPC server or a stream in both directions is not promoted.",
          source: "https://github.com/grpc/grpc/pull/33430, and 150 forks each with 1.80.0 and 1.85.0"
  handled since: "1.57.0", before: "1.80.0", given: "GRPC_ENABLE_FORK_SUPPORT=1", condition: switched_on,
          note: "A fork after a call can hang or abort the process, whatever is done before (seen in 1.67.0, 1.72.0; " \
                "calls fail in 1.78.1). So a worker that has made one is not promoted; make none while the app is " \
                "loaded.",
          advice: "update it to 1.80.0: then workers can be promoted",
          source: "https://github.com/grpc/grpc/issues/40741 and https://github.com/grpc/grpc/issues/39942"
  yours since: "1.57.0",
        note: "Its fork support is switched off: a stub made before the fork does not work in the child.",
        advice: "take GRPC_ENABLE_FORK_SUPPORT out of the environment, or set it to 1",
        source: "https://github.com/grpc/grpc/pull/33430"
  yours before: "1.57.0",
        note: "A process whose parent has used it cannot: the call raises, or hangs in old versions.",
        advice: "update it to 1.80.0; or make no call before the fork, and set `refork false`",
        source: "https://github.com/grpc/grpc/pull/16332"

  threads(/\A(?:grpc_global_tim|default-executo|resolver-execut|event_engine)\z/)
  unsafe_after "GRPC::Core::Channel", :create_call, before: "1.80.0", because: "a fork after a call may hang"
  ready = false
  before_fork do
    next unless Pando::ForkSafety::Libraries::Threads.names.include?("grpc_global_tim") # it was never used

    GRPC.prefork
    ready = true
  end
  after = lambda do |method_name|
    GRPC.public_send(method_name) if ready
    ready = false
  end
  in_parent { after.call(:postfork_parent) }
  in_child { after.call(:postfork_child) }
end
