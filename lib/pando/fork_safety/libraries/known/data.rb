# frozen_string_literal: true

require "pando/fork_safety/libraries/cable_server"
require "pando/fork_safety/libraries/concurrent_executors"
require "pando/fork_safety/libraries/selectors"
require "pando/fork_safety/libraries/timer_tasks"
require "rbconfig"

Pando::ForkSafety::Libraries::Known.define do
  # Action Cable and its adapters. These rows come first, because ActiveRecord writes what solid_cable has queued.
  server = Pando::ForkSafety::Libraries::CableServer
  selectors = Pando::ForkSafety::Libraries::Selectors

  describe "actioncable", constant: "ActionCable::Server::Base", tested: true do
    handled note: "Pando stops its event loop, thread pools and subscription adapter before the fork. They start " \
                  "again when they are used. Pando tells its clients to reconnect (docs/action_cable.md).",
            source: "https://github.com/rails/rails/blob/v8.1.1/actioncable/lib/action_cable/server/base.rb"
    say_goodbye { server.say_goodbye }
    before_fork { server.stop }
    in_child { server.forget }
    before_exit { |seconds| server.stop(seconds) }
    revives_threads at: %r{/action_cable/(?:connection|server|subscription_adapter)/\w+\.rb:\d+\z}
  end

  describe "solid_cable", constant: "SolidCable", tested: true do
    handled note: "Its queued broadcasts are written before the fork. Its writer and its listener start again when " \
                  "they are used; see actioncable.",
            source: "https://github.com/rails/solid_cable/blob/v4.1.0/lib/solid_cable/batched_broadcaster.rb"
    before_fork { server.stop }
    files = %w[solid_cable/batched_broadcaster action_cable/subscription_adapter/solid_cable]
    revives_threads at: %r{/(?:#{files.join("|")})\.rb:\d+\z}
  end

  describe "nio4r", constant: "NIO::Selector", tested: true do
    handled note: "A child would share a selector's epoll set, so Pando does not promote a worker with an open " \
                  "selector. It closes Action Cable's selector before the fork.",
            source: "https://github.com/socketry/nio4r/blob/main/ext/nio4r/selector.c (no ev_loop_fork)"
    watch { selectors.watch }
    before_fork { selectors.refuse_live }
  end

  describe "websocket-driver", constant: "WebSocket::Driver", tested: true do
    fine note: "It has no thread and no socket of its own. When a worker leaves, Pando closes the WebSockets that it " \
               "serves (docs/live.md).",
         source: "https://github.com/faye/websocket-driver-ruby/blob/0.8.0/lib/websocket/driver.rb"
    # Close codes (RFC 6455 section 7.4.1, and IANA's registry for 1012), with their reasons for the client.
    going_away = [1001, "the server stops"]
    restart = [1012, "the server restarts: connect again"]
    # Action Cable uses this library, too. It has told its clients to connect again before this is asked (CableServer).
    hang_up do |stopping|
      code, reason = stopping ? going_away : restart
      # The application's own outgoing connections are left to it.
      served = ObjectSpace.each_object(WebSocket::Driver).select do |driver|
        driver.state == :open && !driver.is_a?(WebSocket::Driver::Client)
      rescue StandardError
        false # it is being made
      end
      served.each do |driver|
        driver.close(reason, code)
      rescue StandardError
        nil # the client has gone
      end
      served.any?
    end
  end

  # Rails, and libraries that a default Rails app loads.
  describe "activerecord", constant: "ActiveRecord::Base", tested: true do
    fine since: "7.0.0",
         note: "A child discards its parent's connections without telling the server, and opens its own.",
         source: "https://github.com/rails/rails/blob/v7.0.0/activesupport/lib/active_support/fork_tracker.rb"
    handled before: "7.0.0",
            note: "It does not notice a fork through Process._fork. Pando closes its connections before the fork.",
            source: "https://github.com/rails/rails/commit/fe4ead7fc62"
    before_fork { Pando::ForkSafety::Libraries::ActiveRecordPools.disconnect }
    # The reaper: a pool that a child makes gets a reaper thread in that child.
    revives_threads at: %r{/active_record/connection_adapters/abstract/connection_pool/reaper\.rb:\d+\z}
  end

  describe "bootsnap", constant: "Bootsnap", tested: true do
    fine note: "Once loaded, it has no thread and no open file.",
         source: "https://github.com/Shopify/bootsnap/tree/v1.18.6/lib/bootsnap"
  end

  describe "mini_mime", constant: "MiniMime::Db", tested: true do
    fine since: "1.1.3",
         note: "It reads its file without moving the position that parent and child share.",
         source: "https://github.com/discourse/mini_mime/blob/v1.1.5/CHANGELOG"
    refused before: "1.1.3",
            note: "Parent and child share the position in its file, so a lookup may find another type.",
            advice: "Update mini_mime to 1.1.3.",
            source: "https://github.com/discourse/mini_mime/blob/v1.1.5/CHANGELOG"
  end

  describe "nokogiri", constant: "Nokogiri::XML::Document", tested: true do
    fine note: "It starts no threads. libxml2 fetches external resources only while it parses, and by default not at " \
               "all.",
         source: "https://github.com/sparklemotion/nokogiri/blob/v1.18.10/lib/nokogiri/xml/parse_options.rb (NONET), " \
                 "nm -D of 1.18.10 and 1.19.7"
  end

  describe "listen", constant: "Listen::Listener", tested: true do
    refused used: -> { false },
            note: "A child lacks its threads, so it notices no change.",
            advice: "Do not listen in production, or start with after_worker_fork { Listen.to(…) { … }.start } and " \
                    "stop with before_fork { Listen.stop }.",
            source: "https://github.com/guard/listen#issues--limitations"
  end

  # Libraries that do work later, in threads of the same process.
  describe "concurrent-ruby", constant: "Concurrent::ThreadPoolExecutor", tested: true do
    fine since: "1.1.7",
         note: "In a child, pools, Async and ScheduledTask work again, without the queued tasks; the parent runs " \
               "those. A TimerTask does not: it counts as a thread (docs/audit.md). A worker that leaves runs its " \
               "tasks first, within `stop_timeout`.",
         source: "https://github.com/ruby-concurrency/concurrent-ruby/blob/v1.1.7/CHANGELOG.md"
    fine since: "1.0.3", before: "1.1.7",
         note: "Pools and ScheduledTask work again in a child; Async and TimerTask do not.",
         source: "https://github.com/ruby-concurrency/concurrent-ruby/blob/v1.1.7/CHANGELOG.md"
    watch { Pando::ForkSafety::Libraries::TimerTasks.watch }
    queues count: Pando::ForkSafety::Libraries::ConcurrentExecutors.method(:count),
           names: Pando::ForkSafety::Libraries::ConcurrentExecutors.method(:names)
    revives_threads at: %r{/concurrent-ruby[^/]*/lib/concurrent-ruby/concurrent/}
  end

  describe "timeout", constant: "Timeout", tested: true do
    fine note: "The first Timeout.timeout in a child starts its thread again.",
         source: "https://github.com/ruby/timeout/blob/v0.3.0/lib/timeout.rb"
    ruby_lib = Regexp.escape(RbConfig::CONFIG["rubylibdir"])
    folders = ["/timeout-[^/]+/lib", "/rubygems/vendor/timeout/lib", "\\A#{ruby_lib}"]
    revives_threads at: %r{(#{folders.join("|")})/timeout\.rb:\d+\z}
  end

  describe "activejob", constant: "ActiveJob::QueueAdapters::AsyncAdapter", tested: true do
    fine note: "The async adapter keeps its jobs in an executor of concurrent-ruby. The parent runs them, and a " \
               "worker that leaves runs its jobs first. Jobs with a `wait` beyond `stop_timeout` are dropped and " \
               "named.",
         source: "https://github.com/rails/rails/blob/v8.1.0/activejob/lib/active_job/queue_adapters/async_adapter.rb"
  end

  describe "sucker_punch", constant: "SuckerPunch::Queue", tested: true do
    fine since: "2.0.0",
         note: "Its queues are executors of concurrent-ruby. The parent runs their jobs, and a worker that leaves " \
               "runs its jobs first.",
         source: "https://github.com/brandonhilkert/sucker_punch/blob/master/lib/sucker_punch/queue.rb"
  end

  # Databases, caches, and the job queue in a database.
  describe "sequel", constant: "Sequel::Database", tested: true do
    handled note: "It does not notice a fork. Pando closes its connections before the fork, except those to SQLite " \
                  "in memory.",
            source: "https://github.com/jeremyevans/sequel/blob/5.110.0/doc/fork_safety.rdoc"
    in_memory = lambda do |database|
      database.adapter_scheme == :sqlite && [nil, "", ":memory:"].include?(database.opts[:database])
    end
    before_fork { Sequel::DATABASES.each { |database| database.disconnect unless in_memory.call(database) } }
  end

  describe "solid_cache", constant: "SolidCache", tested: true do
    fine note: "Its entries are stored through ActiveRecord. The thread that removes old entries belongs to " \
               "concurrent-ruby and starts again in a child.",
         source: "https://github.com/rails/solid_cache/blob/v1.0.10/lib/solid_cache/store/execution.rb"
  end

  describe "solid_queue", constant: "SolidQueue", tested: true do
    fine note: "A process that serves requests only writes jobs, through ActiveRecord. Solid Queue's workers and its " \
               "dispatcher run in nodes of their own; see docs/swarm.md.",
         source: "https://github.com/rails/solid_queue/blob/v1.4.0/lib/active_job/queue_adapters/" \
                 "solid_queue_adapter.rb"
  end

  describe "mongo", constant: "Mongo::Client", tested: true do
    refused since: "2.13.0",
            used: -> { ObjectSpace.each_object(Mongo::Cluster).any?(&:connected?) },
            note: "A child lacks the threads that monitor the servers.",
            advice: "Close the client before the fork, before_fork { MONGO.close }, and reconnect in each worker, " \
                    "after_worker_fork { MONGO.reconnect }.",
            source: "https://github.com/mongodb/mongo-ruby-driver/pull/2049 and " \
                    "https://github.com/mongodb/mongo-ruby-driver/pull/1918"
    revives_threads at: %r{/lib/mongo/socket/\w+\.rb:\d+\z}
  end

  describe "connection_pool", constant: "ConnectionPool", tested: true do
    fine since: "2.4.0",
         note: "A child drops the pool's connections and calls their `close`. With pg and mysql2, `close` ends the " \
               "session at the server, so the parent loses its connection too. Close such connections before the " \
               "fork.",
         source: "https://github.com/mperham/connection_pool/blob/v3.0.2/lib/connection_pool/fork.rb, Changes.md"
    fine before: "2.4.0",
         note: "A child keeps the pool's connections. Whether that is safe depends on the connections; see their own " \
               "rows.",
         source: "https://github.com/mperham/connection_pool/pull/166"
  end

  describe "redis", constant: "Redis", tested: true do
    fine since: "5.0.5",
         note: "A child opens its own connection.",
         source: "https://github.com/redis/redis-rb/blob/v5.0.5/CHANGELOG.md"
    handled since: "5.0.0", before: "5.0.5",
            note: "A child does not drop its parent's connection. Pando closes its connections before the fork.",
            source: "https://github.com/redis/redis-rb/issues/1157"
    fine since: "3.1.0", before: "5.0.0",
         note: "A child opens its own connection, unless `inherit_socket` is set.",
         source: "https://github.com/redis/redis-rb/blob/v4.8.1/CHANGELOG.md (3.1.0, 4.8.1)"
    before_fork { ObjectSpace.each_object(Redis).to_a.each(&:close) }
  end

  describe "redis-client", constant: "RedisClient", tested: true do
    fine since: "0.9.0",
         note: "A child opens its own connection.",
         source: "https://github.com/redis-rb/redis-client/blob/v0.9.0/CHANGELOG.md"
    handled before: "0.9.0",
            note: "A child goes on using its parent's connection. Pando closes its connections before the fork.",
            source: "https://github.com/redis-rb/redis-client/blob/v0.9.0/CHANGELOG.md"
    before_fork { ObjectSpace.each_object(RedisClient).to_a.each(&:close) }
  end

  describe "dalli", constant: "Dalli::Client", tested: true do
    fine since: "4.0.0",
         note: "A child opens its own connection.",
         source: "https://github.com/petergoldstein/dalli/blob/v4.0.0/CHANGELOG.md"
    fine since: "2.0.4", before: "4.0.0",
         note: "A child opens its own connection. In some versions its first request fails (Dalli::NetworkError), " \
               "and the client retries it.",
         source: "https://github.com/petergoldstein/dalli/blob/v3.2.8/lib/dalli/protocol/connection_manager.rb"
  end

  describe "pg", constant: "PG::Connection", tested: true do
    fine through: %w[activerecord sequel],
         note: "The library that manages the connections keeps them apart.",
         source: "https://github.com/rails/rails/blob/v7.0.0/activerecord/lib/active_record/" \
                 "connection_adapters/postgresql_adapter.rb"
    refused used: -> { ObjectSpace.each_object(PG::Connection).any? { |one| !one.finished? } },
            note: "It does not notice a fork. When a child closes or garbage-collects a connection, the server " \
                  "closes it for the parent too.",
            advice: "Close the connection before the fork, before_fork { DB.finish }, and connect again on the next " \
                    "use. In a connection_pool: before_fork { POOL.reload(&:finish) }.",
            source: "https://github.com/ged/ruby-pg/blob/v1.6.3/ext/pg_connection.c (pgconn_gc_free)"
  end

  describe "mysql2", constant: "Mysql2::Client", tested: true do
    fine through: %w[activerecord sequel],
         note: "The library that manages the connections keeps them apart.",
         source: "https://github.com/rails/rails/blob/v7.0.0/activerecord/lib/active_record/" \
                 "connection_adapters/mysql2_adapter.rb"
    refused used: -> { ObjectSpace.each_object(Mysql2::Client).any? { |one| !one.closed? } },
            note: "Up to 0.5.7 it does not notice a fork. When a child closes or garbage-collects a connection, the " \
                  "server closes it for the parent too.",
            advice: "Close the connection before the fork, before_fork { MYSQL.close }, and connect again on the " \
                    "next use.",
            source: "https://github.com/brianmario/mysql2#fork-safety and /commit/cb66da4"
  end

  describe "trilogy", constant: "Trilogy", tested: true do
    fine through: %w[activerecord sequel],
         note: "The library that manages the connections keeps them apart.",
         source: "https://github.com/rails/rails/blob/v7.1.0/activerecord/lib/active_record/" \
                 "connection_adapters/trilogy_adapter.rb"
    refused used: -> { ObjectSpace.each_object(Trilogy).any? { |one| !one.closed? } },
            note: "It does not notice a fork, so parent and child would use one connection.",
            advice: "Close the connection before the fork, before_fork { TRILOGY.close }, and connect again on the " \
                    "next use.",
            source: "https://github.com/trilogy-libraries/trilogy/blob/main/CHANGELOG.md (2.4.0, #65)"
  end

  describe "sqlite3", constant: "SQLite3::Database", tested: true do
    fine since: "2.1.0", through: %w[activerecord sequel],
         note: "A child closes the databases that it inherited, and the library that manages the connections opens " \
               "them again.",
         source: "https://github.com/sparklemotion/sqlite3-ruby/blob/v2.1.0/adr/2024-09-fork-safety.md"
    handled before: "2.1.0", through: %w[activerecord],
            note: "SQLite must not be carried through a fork. Pando closes ActiveRecord's connections to it before " \
                  "the fork, except databases in memory.",
            source: "https://www.sqlite.org/howtocorrupt.html section 2.6, https://github.com/rails/rails/pull/52931"
    before_fork do
      Pando::ForkSafety::Libraries::ActiveRecordPools.disconnect { |config| config.adapter == "sqlite3" }
    end
    fine before: "2.1.0", through: %w[sequel],
         note: "Pando closes its connections before the fork, with Sequel's other connections.",
         source: "https://github.com/jeremyevans/sequel/blob/5.110.0/doc/fork_safety.rdoc"
    in_use = -> { ObjectSpace.each_object(SQLite3::Database).any? { |one| !one.closed? && !one.readonly? } }
    refused since: "2.1.0", used: in_use,
            note: "A child closes the writable databases that it inherited.",
            advice: "Close the database before the fork, before_fork { SQLITE.close }, and open it again on the next " \
                    "use.",
            source: "https://github.com/sparklemotion/sqlite3-ruby/blob/v2.1.0/CHANGELOG.md"
    refused before: "2.1.0", used: in_use,
            note: "A child that goes on using an inherited database may corrupt it.",
            advice: "Close the database before the fork, before_fork { SQLITE.close }, and open it again on the next " \
                    "use.",
            source: "https://www.sqlite.org/howtocorrupt.html section 2.6"
  end
end
