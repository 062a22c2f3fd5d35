# frozen_string_literal: true

# HTTP clients.
Pando::ForkSafety::Libraries::Known.define do
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
