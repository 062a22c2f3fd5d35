# frozen_string_literal: true

# Brokers and remote calls.
Pando::ForkSafety::Libraries::Known.define do
  describe "grpc", constant: "GRPC::Core", tested: true do
    switched_on = -> { ENV["GRPC_ENABLE_FORK_SUPPORT"] == "1" }
    handled since: "1.80.0", given: "GRPC_ENABLE_FORK_SUPPORT=1", condition: switched_on,
            note: "If it was used, Pando stops its threads before the fork and starts them again in parent and " \
                  "child. The first call of a child through an inherited stub may fail with GRPC::Unavailable; retry " \
                  "it. Pando does not promote a worker that runs a gRPC server or a bidirectional stream.",
            source: "https://github.com/grpc/grpc/pull/33430, and 150 forks each with 1.80.0 and 1.85.0"
    limits_reforking since: "1.57.0", before: "1.80.0", given: "GRPC_ENABLE_FORK_SUPPORT=1", condition: switched_on,
                     note: "A fork after a call can hang or abort the process, whatever is done before (seen in " \
                           "1.67.0 and 1.72.0; calls fail in 1.78.1). So Pando does not promote a worker that has " \
                           "made a call. Make none while the app is loaded.",
                     advice: "Update it to 1.80.0. Then Pando can promote workers.",
                     source: "https://github.com/grpc/grpc/issues/40741 and https://github.com/grpc/grpc/issues/39942"
    in_use = -> { Pando::ForkSafety::Libraries::Threads.names.include?("grpc_global_tim") }
    refused since: "1.57.0", used: in_use,
            note: "Its fork support is off, so a stub made before the fork does not work in the child.",
            advice: "Remove GRPC_ENABLE_FORK_SUPPORT from the environment, or set it to 1.",
            source: "https://github.com/grpc/grpc/pull/33430"
    refused before: "1.57.0", used: in_use,
            note: "If the parent has used it, a child cannot use it: the call raises, or hangs in old versions.",
            advice: "Update it to 1.80.0. Or make no call before the fork, and set `refork false`.",
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

  describe "google-protobuf", constant: "Google::Protobuf", tested: true do
    fine note: "It only computes: no threads, no connections.",
         source: "https://github.com/protocolbuffers/protobuf/tree/main/ruby/ext/google/protobuf_c"
  end

  describe "rdkafka", constant: "Rdkafka::Config", tested: true do
    limits_reforking note: "A child has none of librdkafka's threads, so its copy of a client is useless. Pando does " \
                           "not promote a worker with an open client. Open none while the app is loaded.",
                     advice: "Close the client before the fork, before_fork { PRODUCER.close }, and make a new one " \
                             "on the next use. Then Pando can promote workers.",
                     source: "https://github.com/karafka/rdkafka-ruby#forking"
    threads(/\Ardk:/, unsafe: true)
  end

  describe "waterdrop", constant: "WaterDrop::Producer", tested: true do
    limits_reforking since: "2.8.6",
                     note: "A producer that was used before the fork raises ProducerUsedInParentProcess in the " \
                           "child. Pando does not promote a worker with an open producer; see rdkafka.",
                     advice: "Disconnect the producer before the fork: before_fork { PRODUCER.disconnect }. It " \
                             "connects again on the next use.",
                     source: "https://github.com/karafka/waterdrop/blob/v2.8.10/lib/waterdrop/producer.rb"
    limits_reforking since: "2.0.0", before: "2.8.6",
                     note: "A producer that was used before the fork raises ProducerUsedInParentProcess in the " \
                           "child. Pando does not promote a worker with an open producer; see rdkafka.",
                     advice: "Close the producer before the fork, before_fork { PRODUCER.close }, and make a new one " \
                             "on the next use.",
                     source: "https://github.com/karafka/waterdrop/blob/v2.8.0/lib/waterdrop/producer.rb"
  end

  describe "karafka", constant: "Karafka::App", tested: true do
    fine note: "A process that serves requests has only a producer. Disconnect it before the fork, before_fork { " \
               "Karafka.producer.disconnect }; see waterdrop.",
         source: "https://github.com/karafka/karafka/blob/master/lib/karafka.rb"
  end

  describe "bunny", constant: "Bunny::Session", tested: true do
    refused used: -> { ObjectSpace.each_object(Bunny::Session).any?(&:open?) },
            note: "Parent and child would share the connection, and the child lacks the threads that serve it.",
            advice: "Close the connection before the fork, before_fork { BUNNY.close }, and connect again on the " \
                    "next use.",
            source: "https://github.com/ruby-amqp/bunny/blob/main/docs/guides/connecting.md"
  end

  describe "message_bus", constant: "MessageBus", tested: true do
    handled note: "If the process listens, Pando calls MessageBus.after_fork in each child. The threads that wait " \
                  "for messages start again.",
            source: "https://github.com/discourse/message_bus#forkingthreading-app-servers"
    listening = false
    before_fork { listening = MessageBus.listening? }
    in_child { MessageBus.after_fork if listening }
    revives_threads at: %r{/lib/message_bus(?:\.rb|/(?:timer_thread|backends/redis)\.rb):\d+\z}
  end
end
