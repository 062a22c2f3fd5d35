# frozen_string_literal: true

require "json"
require "pando/cli/control_client"
require "pando/cli/status_report"
require "support/cable_client"
require "support/postgresql"
require "support/redis_server"
require "support/server_process"
require "tmpdir"
require_relative "../../bench/support/bundle"

module Support
  # For tests of Action Cable: a server with test/fixtures/apps/cable, its clients, and what is broadcast to them.
  module CableStage
    APP = File.expand_path("../fixtures/apps/cable", __dir__)
    FAREWELL = { "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }.freeze
    TROUBLE = /\.(?:lost|killed|failed|discarded|refused|unsafe|timed_out)\z/
    # Seconds that a broadcast may be on its way: one that is begun so shortly before the good-bye may come too late.
    ON_ITS_WAY = 1.0
    # Seconds in which a process may not hear of broadcasts yet, though its clients are subscribed: Rails confirms a
    # second subscription to a stream at once, while the adapter's SUBSCRIBE or LISTEN for the first one is on its way.
    # PostgreSQL's listener looks for such orders once a second.
    DEAF = Hash.new(0).merge("redis" => 0.5, "postgresql" => 1.5)

    Hold = Struct.new(:name, :thread, :pid)
    Sent = Struct.new(:text, :worker, :begun_at, :done_at)

    def self.bundle = @bundle ||= Bench::Bundle.new("cable", File.join(APP, "Gemfile")).prepare

    def setup
      super
      @folder = Dir.mktmpdir("pando-cable")
      File.chmod(0o755, @folder) # another user's server may be in it
      @clients = []
      @sent = []
      @held = 0
      @texts = 0
    end

    def teardown
      @clients.each(&:close)
      assert_empty(@clients.flat_map(&:faults))
    ensure
      @server&.kill
      @redis&.stop
      @postgresql&.stop
      FileUtils.rm_rf(@folder)
      super
    end

    private

    # @param adapter [String] "redis", "postgresql": the server that it needs is started too
    # @param config [String] for config/pando.rb
    def start(adapter, workers: 2, environment: "production", config: "")
      @adapter = adapter
      start_broker
      File.write(File.join(@folder, "database.yml"), JSON.generate(environment => database))
      @server = ServerProcess.start(
        arguments: [File.join(APP, "config.ru"), "-w", workers.to_s, "--refork", "manual", "-e", environment],
        config: "timeout 120; control 'control.sock'\n#{config}",
        env: CableStage.bundle.environment.merge(
          "APP_CABLE" => adapter, "APP_FOLDER" => @folder, "APP_REDIS" => @redis&.url, "RAILS_ENV" => environment,
          "APP_DATABASE_YML" => File.join(@folder, "database.yml")
        )
      )
      @server.wait_past("server.ready") # with all its pools
    end

    def start_broker
      case @adapter
      when "solid_cable"
        skip "solid_cable needs Rails 7.2, which this Ruby has not got here" if RUBY_VERSION < "3.2"
      when "redis"
        skip RedisServer.obstacle if RedisServer.obstacle
        @redis = RedisServer.new(@folder).start
      when "postgresql"
        skip PostgreSQL.obstacle if PostgreSQL.obstacle
        @postgresql = PostgreSQL.new(File.join(@folder, "pg")).start
      end
    end

    def database
      return { adapter: "postgresql", host: @postgresql.folder, username: "pando", database: "postgres" } if @postgresql

      { adapter: "sqlite3", database: File.join(@folder, "cable.sqlite3"), timeout: 5000 }
    end

    def reload = @server.wait_for("reload.finished", "reload.failed") { @server.signal("HUP") }

    # --- one worker at a time

    # All workers of the pool `web` have a request but for the one whose turn it is, so that it is the one with the
    # fewest.
    #
    # @yieldparam pid [Integer]
    def on_each_worker
      @server.wait_for_leavers
      pids = @server.workers.map(&:pid)
      pids.each do |pid|
        holds = []
        holds << hold until (pids - [pid] - holds.map(&:pid)).empty?
        mine, others = holds.partition { |one| one.pid == pid }
        mine.each { |one| release(one) }
        yield pid
        others.each { |one| release(one) }
      end
    end

    def hold
      name = "#{@held += 1}-#{Process.pid}"
      thread = Thread.new { JSON.parse(@server.get("/hold?name=#{name}").body)["worker"] }
      path = File.join(@folder, "held-#{name}")
      wait_until(message: "a worker that is held") { File.exist?(path) }
      Hold.new(name, thread, File.read(path).to_i)
    end

    def release(hold)
      File.write(File.join(@folder, "release-#{hold.name}"), "")
      assert_equal hold.pid, hold.thread.value
    end

    # --- clients

    # @param each [Integer] how many clients each worker is to have at least
    def connect_to_each_worker(each)
      wait_until_subscribed
      on_each_worker do |pid|
        missing = each - @clients.count { |client| client.worker == pid }
        missing.times { connect(pid) }
      end
      wait_until(message: "a count of the connections") do
        @server.workers.all? { |one| connections_of(one.pid) >= each }
      end
    end

    # A worker with threads may take one more request before the one that has just been answered counts as ended. Then
    # another connection is made.
    #
    # @param pid [Integer] of the worker that is to have it
    # @return [CableClient]
    def connect(pid)
      wait_until(message: "a connection to #{pid}") do
        client = CableClient.new(@server.method(:connect))
        @clients << client
        wait_until(message: "a subscription") { client.subscribed? }
        next client if client.worker == pid

        @clients.delete(client).close
        nil
      end
    end

    # @param pids [Array<Integer>] of the processes that they may be at
    def wait_until_subscribed(pids = nil)
      wait_until(message: -> { "clients that are subscribed: #{@clients.map(&:session)}" }) do
        alive = pids || @server.workers.map(&:pid)
        @clients.all? { |client| client.subscribed? && alive.include?(client.worker) }
      end
    end

    # What the monitor knows of it.
    def connections_of(pid)
      status.fetch("processes").find { |process| process["pid"].to_i == pid }&.fetch("connections", 0).to_i
    end

    # As `pando status --format json` prints it.
    def status
      records = []
      ask("status") { |*record| records << record }
      JSON.parse(Pando::CLI::StatusReport.new(records).json)
    end

    # --- broadcasts

    def broadcast(text)
      begun_at = now
      response = @server.get("/broadcast?text=#{text.tr(" ", "+")}")
      assert_equal 200, response.status, response.body
      Sent.new(text, JSON.parse(response.body)["worker"], begun_at, now)
    end

    # Each client receives what each worker of the pool `web` broadcasts.
    def broadcast_from_each_worker
      on_each_worker do |pid|
        text = broadcast_from(pid)
        wait_until(message: -> { "#{text} at each client: #{@clients.map(&:session)}" }) do
          @clients.all? { |client| client.received?(text) }
        end
      end
    end

    # See {#connect}.
    def broadcast_from(pid)
      wait_until(message: "a broadcast from #{pid}") do
        text = "text #{@texts += 1} of #{pid}"
        text if broadcast(text).worker == pid
      end
    end

    # Broadcasts go on all the time meanwhile.
    def publishing
      over = false
      publisher = Thread.new do
        count = 0
        until over
          @sent << broadcast("message #{count += 1}")
          pause(0.02)
        end
      end
      yield
    ensure
      over = true
      publisher&.join
    end

    # Whatever was broadcast while a client was subscribed has reached it.
    def assert_all_delivered
      lost = @clients.flat_map(&:sessions).select(&:confirmed_at).flat_map do |session|
        owed(session).reject { |sent| session.texts.include?(sent.text) }
                     .map { |sent| [sent, session.to_h.slice(:worker, :confirmed_at, :told_at, :ended_at)] }
      end
      assert_empty lost
      assert_operator @sent.size, :>, 20
    end

    # What was broadcast while a session was subscribed.
    def owed(session)
      last = session.told_at || session.ended_at || now
      @sent.select { |sent| sent.begun_at > session.confirmed_at + DEAF[@adapter] && sent.done_at < last - ON_ITS_WAY }
    end

    # Each connection that ended was told so, in Rails' words.
    def assert_farewells
      ended = @clients.flat_map(&:sessions).select { |session| session.confirmed_at && session.ended_at }

      refute_empty ended
      assert_empty ended.select(&:cut_off?)
      assert_equal([FAREWELL], ended.map(&:farewell).uniq)
    end

    def assert_no_trouble
      troubles = @server.events.select { |event| TROUBLE.match?(event["event"]) }
      assert_empty(troubles.reject { |event| event["event"] == "refork.refused" })
    end

    # What `pando WORD` asks, without a Ruby of its own.
    # @return [Array(String, Hash)] the last record, "ok" or "failed"
    def ask(word, **pairs, &block)
      client = Pando::CLI::ControlClient.new(File.join(@server.folder, "control.sock"))
      client.ask(word, pairs, timeout: ServerProcess::PATIENCE) { |*record| block&.call(*record) }
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
