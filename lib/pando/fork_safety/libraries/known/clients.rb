# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.define do
  # Brokers and remote calls.
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
    unsafe_threads(/\Ardk:/)
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

  # HTTP clients.
  describe "net-http-persistent", constant: "Net::HTTP::Persistent", tested: true do
    fine since: "4.0.2", through: %w[connection_pool],
         note: "Its pool is a ConnectionPool, which drops inherited connections from its version 2.4 on.",
         source: "https://github.com/drbrain/net-http-persistent/blob/v4.0.2/History.txt"
  end

  describe "httpx", constant: "HTTPX::Session", tested: true do
    handled note: "A persistent session keeps its connections. Pando closes the connections of all sessions before " \
                  "the fork. They open again with the next request.",
            source: "https://github.com/HoneyryderChuck/httpx/blob/v1.5.0/doc/release_notes/1_5_0.md"
    before_fork { ObjectSpace.each_object(HTTPX::Session).to_a.each(&:close) }
  end

  describe "excon", constant: "Excon::Connection", tested: true do
    fine since: "0.99.0",
         note: "A child opens its own connections.",
         source: "https://github.com/excon/excon/blob/v0.99.0/changelog.txt"
    handled before: "0.99.0",
            note: "Parent and child would share a persistent connection. Pando closes persistent connections before " \
                  "the fork.",
            source: "https://github.com/excon/excon/commit/136ca97"
    before_fork { ObjectSpace.each_object(Excon::Connection).to_a.each(&:reset) }
  end

  describe "typhoeus", constant: "Typhoeus::Pool", tested: true do
    fine since: "0.7.1",
         note: "A child does not use the handles of its parent's pool, so it does not use their connections. From " \
               "ethon 0.19 on, Pando does not promote a worker that has used it; see ethon.",
         source: "https://github.com/typhoeus/typhoeus/pull/426"
    handled before: "0.7.1",
            note: "Parent and child would share the connections of the pool. Pando empties the pool before the fork.",
            source: "https://github.com/typhoeus/typhoeus/pull/426"
    before_fork { Typhoeus::Pool.clear }
  end

  describe "ethon", constant: "Ethon::Easy", tested: true do
    refused since: "0.19.0", used: -> { Ethon::Curl.class_variable_get(:@@initialized) },
            note: "In a child of a process that has used it, it raises Ethon::Errors::ForkSafety.",
            advice: "Make no request with it while the app is loaded. Use another client, so that Pando can promote " \
                    "workers.",
            source: "https://github.com/typhoeus/ethon/blob/v0.19.0/lib/ethon/curl.rb (check_pid!)"
    fine through: %w[typhoeus],
         note: "Typhoeus keeps its handles apart.",
         source: "https://github.com/typhoeus/typhoeus/pull/426"
    refused used: -> { GC.start.nil? && ObjectSpace.each_object(Ethon::Easy).any? },
            note: "A used handle keeps its connection, and parent and child then share that connection.",
            advice: "Make a new Ethon::Easy for each request. If you keep one, drop it before the fork: before_fork " \
                    "{ EASY = nil }.",
            source: "https://github.com/typhoeus/typhoeus/pull/426"
  end

  describe "curb", constant: "Curl::Easy", tested: true do
    kept = "A handle of your own keeps a connection that parent and child share. Close it: before_fork { EASY.close }."
    fine since: "1.3.6",
         note: "Curl.get and similar calls make a connection for each request. #{kept}",
         source: "https://github.com/taf2/curb/blob/master/ChangeLog.md (1.3.6)"
    handled before: "1.3.6",
            note: "Before the fork, Pando closes the handle that Curl.get and similar calls use. #{kept}",
            source: "https://github.com/taf2/curb/blob/v1.2.2/lib/curl.rb"
    before_fork { Thread.current[:curb_curl]&.close }
  end

  describe "faraday", constant: "Faraday::Connection", tested: true do
    fine note: "Its net_http adapter makes a connection for each request. For other adapters, see the rows of their " \
               "clients: net-http-persistent, httpx, excon, typhoeus.",
         source: "https://github.com/lostisland/faraday-net_http/blob/main/lib/faraday/adapter/net_http.rb"
  end

  describe "http", constant: "HTTP::Client", tested: true do
    fine note: "It makes a connection for each request. Parent and child share a persistent client that was used " \
               "before the fork. Close it: before_fork { CLIENT.close }.",
         source: "https://github.com/httprb/http/wiki/Persistent-Connections-%28keep-alive%29"
  end

  describe "httparty", constant: "HTTParty", tested: true do
    fine note: "It makes a connection for each request.",
         source: "https://github.com/jnunemaker/httparty/blob/main/lib/httparty/request.rb"
  end

  describe "httpclient", constant: "HTTPClient", tested: true do
    handled note: "A client keeps its connections. Pando closes the connections of all clients before the fork. They " \
                  "open again with the next request.",
            source: "https://github.com/nahi/httpclient/blob/master/lib/httpclient/session.rb"
    before_fork { ObjectSpace.each_object(HTTPClient).to_a.each(&:reset_all) }
    revives_threads at: %r{/lib/httpclient/timeout\.rb:\d+\z}
  end

  describe "stripe", constant: "Stripe::ConnectionManager", tested: true do
    handled note: "Each thread keeps its connections. Pando closes them before the fork. They open again with the " \
                  "next request.",
            source: "https://github.com/stripe/stripe-ruby/blob/master/lib/stripe/connection_manager.rb"
    before_fork { ObjectSpace.each_object(Stripe::ConnectionManager).to_a.each(&:clear) }
  end

  describe "aws-sdk-core", constant: "Aws::Plugins", tested: true do
    handled note: "It keeps its connections in a pool of the process. Pando empties the pool before the fork.",
            source: "https://github.com/aws/aws-sdk-ruby/blob/version-3/gems/aws-sdk-core/lib/seahorse/client/" \
                    "net_http/connection_pool.rb"
    before_fork { Aws.empty_connection_pools! }
    revives_threads at: %r{/lib/aws-sdk-core/(?:refreshing_credentials|plugins/endpoint_discovery)\.rb:\d+\z}
  end
end
