# frozen_string_literal: true

# HTTP clients.
Pando::ForkSafety::Libraries::Known.define do
  describe "net-http-persistent", constant: "Net::HTTP::Persistent" do
    fine since: "4.0.2", through: %w[connection_pool],
         note: "Its pool is a ConnectionPool, which drops inherited connections from its version 2.4 on.",
         source: "https://github.com/drbrain/net-http-persistent/blob/v4.0.2/History.txt"
  end

  describe "httpx", constant: "HTTPX::Session" do
    yours since: "1.5.0",
          note: "A persistent session without `close_on_fork` goes on with its parent's connections. Others are fine.",
          advice: "HTTPX.plugin(:persistent, close_on_fork: true)",
          source: "https://github.com/HoneyryderChuck/httpx/blob/v1.5.0/doc/release_notes/1_5_0.md"
    yours before: "1.5.0",
          note: "A persistent session goes on with its parent's connections. Others are fine.",
          advice: "before_fork { SESSION.close }",
          source: "https://github.com/HoneyryderChuck/httpx/blob/v1.5.0/doc/release_notes/1_5_0.md"
  end

  describe "excon", constant: "Excon::Connection" do
    fine since: "0.99.0",
         note: "A child makes connections of its own.",
         source: "https://github.com/excon/excon/blob/v0.99.0/changelog.txt"
    yours before: "0.99.0",
          note: "A persistent connection is shared by parent and child.",
          advice: "update it to 0.99.0, or: before_fork { CONNECTION.reset }",
          source: "https://github.com/excon/excon/commit/136ca97"
  end

  describe "typhoeus", constant: "Typhoeus::Pool" do
    fine since: "0.7.1",
         note: "A child does not use the handles, and so the connections, of its parent's pool.",
         source: "https://github.com/typhoeus/typhoeus/pull/426"
    yours before: "0.7.1",
          note: "Parent and child share the connections of the pool.",
          advice: "after_mold_fork { Typhoeus::Pool.clear } and the same in after_worker_fork",
          source: "https://github.com/typhoeus/typhoeus/pull/426"
  end

  describe "ethon", constant: "Ethon::Easy" do
    fine through: %w[typhoeus],
         note: "Typhoeus keeps its handles apart.",
         source: "https://github.com/typhoeus/typhoeus/pull/426"
    yours note: "A handle that has been used keeps its connection, which parent and child then share.",
          advice: "use a new Ethon::Easy after the fork",
          source: "https://github.com/typhoeus/typhoeus/pull/426"
  end

  describe "curb", constant: "Curl::Easy" do
    yours note: "It does not notice a fork. A handle that has been used keeps its connection, which parent and child " \
                "then share; Curl.get and the like use one handle of the thread.",
          advice: "after_mold_fork { Thread.current[:curb_curl] = nil } and the same in after_worker_fork; handles of " \
                  "your own likewise",
          source: "https://github.com/taf2/curb/blob/master/lib/curl.rb"
  end
end
