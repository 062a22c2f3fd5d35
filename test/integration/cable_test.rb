# frozen_string_literal: true

require "test_helper"
require "json"
require "support/cable_client"
require "support/postgresql"
require "support/redis_server"
require "support/server_process"
require "tmpdir"
require_relative "../../bench/support/bundle"

# Action Cable across reforks, reloads and the stop, with the newest Rails that this Ruby runs. PANDO_CABLE_REFORKS and
# PANDO_CABLE_RELOADS say how many of each.
class CableTest < Minitest::Test
  LIBRARIES = %w[actioncable nio4r solid_cable].freeze
  APP = File.expand_path("../fixtures/apps/cable", __dir__)
  WORKERS = 2
  REFORKS = Integer(ENV.fetch("PANDO_CABLE_REFORKS", 3))
  RELOADS = Integer(ENV.fetch("PANDO_CABLE_RELOADS", 1))
  TROUBLE = /\.(?:lost|killed|failed|discarded|refused|unsafe|timed_out)\z/
  # Seconds that a broadcast may be on its way: one that is begun so shortly before the good-bye may come too late.
  ON_ITS_WAY = 1.0
  # Seconds in which a process may not hear of broadcasts yet, though its clients are subscribed: Rails confirms a
  # second subscription to a stream at once, while the adapter's SUBSCRIBE or LISTEN for the first one is on its way.
  # PostgreSQL's listener looks for such orders once a second.
  DEAF = Hash.new(0).merge("redis" => 0.5, "postgresql" => 1.5)

  def self.bundle = @bundle ||= Bench::Bundle.new("cable", File.join(APP, "Gemfile")).prepare

  def setup
    @folder = Dir.mktmpdir("pando-cable")
    File.chmod(0o755, @folder) # another user's server may be in it
    @clients = []
    @sent = []
    @holds = []
  end

  def teardown
    @clients.each(&:close)
    @server&.kill
    @redis&.stop
    @postgresql&.stop
    FileUtils.rm_rf(@folder)
  end

  def test_solid_cable
    skip "solid_cable needs Rails 7.2, which this Ruby has not got here" if RUBY_VERSION < "3.2"

    assert_nothing_is_lost("solid_cable") { assert_last_words_are_stored }
  end

  def test_redis
    skip Support::RedisServer.obstacle if Support::RedisServer.obstacle

    @redis = Support::RedisServer.new(@folder).start
    assert_nothing_is_lost("redis")
  end

  def test_postgresql
    skip Support::PostgreSQL.obstacle if Support::PostgreSQL.obstacle

    @postgresql = Support::PostgreSQL.new(File.join(@folder, "pg")).start
    assert_nothing_is_lost("postgresql")
  end

  # That adapter delivers within one process; in development there is one worker.
  def test_async_in_development
    start("async", workers: 1, environment: "development", config: "reactor false")
    connect_to_each_worker(1)
    2.times do
      @server.refork
      broadcast_from_each_worker
    end

    assert_operator @server.events("refork.finished").size, :>=, 2
    assert_empty(@server.events.select { |event| event["level"] == "error" })
    assert_farewells
  end

  def test_a_worker_without_connections_is_preferred
    start("async")
    on_each_worker do |number, pid|
      connect(pid) if number.zero?
      broadcast("as many requests as the other")
    end
    holder = @clients.first.worker
    wait_until(message: "a count of the connections") { connections_of(holder) == 1 }
    @server.refork

    started = @server.events("refork.started").last
    refute_equal holder, started["source"], started
    refute_match(/parts with/, started["choice"])
  end

  # A selector that is not Action Cable's stands against promoting its worker only while it is open.
  def test_another_selector
    start("async", workers: 1)
    @server.wait_for("worker.unsafe") { @server.get("/selector") }
    @server.wait_for("refork.refused") { @server.signal("USR2") }
    @server.wait_for("worker.safe") { @server.get("/selector") }
    @server.refork

    assert_empty @server.events("generation.discarded")
  end

  private

  # A broadcast from each worker reaches each client, after each refork and reload, and whatever was broadcast while a
  # client was subscribed has reached it.
  def assert_nothing_is_lost(adapter)
    @adapter = adapter
    start(adapter, config: <<~RUBY)
      before_worker_exit { ActionCable.server.broadcast("notes", { text: "last words of \#{Process.pid}" }) }
    RUBY
    connect_to_each_worker(2)
    broadcast_from_each_worker
    publishing do
      REFORKS.times { refork_and_broadcast }
      RELOADS.times { reload_and_broadcast }
    end
    assert_all_delivered
    yield if block_given?
    assert_reforked_in_spite_of_connections
    assert_empty(@server.events.select { |event| TROUBLE.match?(event["event"]) && event["event"] != "refork.refused" })
    assert_farewells_at_stop
  end

  def refork_and_broadcast
    connect_to_each_worker(1)
    @server.refork
    broadcast_from_each_worker
  end

  def reload_and_broadcast
    number = @server.events("generation.current").last["generation"]
    @server.signal("HUP")
    @server.wait_past("generation.current", generation: number + 1)
    broadcast_from_each_worker
  end

  def start(adapter, workers: WORKERS, environment: "production", config: "")
    File.write(File.join(@folder, "database.yml"), JSON.generate(environment => database))
    @server = Support::ServerProcess.start(
      arguments: [File.join(APP, "config.ru"), "-w", workers.to_s, "--refork", "manual", "-e", environment],
      config: "timeout 120; control 'control.sock'\n#{config}",
      env: self.class.bundle.environment.merge(
        "APP_CABLE" => adapter, "APP_FOLDER" => @folder, "APP_REDIS" => @redis&.url, "RAILS_ENV" => environment,
        "APP_DATABASE_YML" => File.join(@folder, "database.yml")
      )
    )
  end

  def database
    return { adapter: "postgresql", host: @postgresql.folder, username: "pando", database: "postgres" } if @postgresql

    { adapter: "sqlite3", database: File.join(@folder, "cable.sqlite3"), timeout: 5000 }
  end

  # --- one worker at a time

  # All workers are kept busy but for the one whose turn it is, so that it serves what the block asks for.
  #
  # @yieldparam number [Integer] @yieldparam pid [Integer]
  def on_each_worker
    @server.wait_for_leavers
    holds = Array.new(@server.workers.size) { hold }
    holds.map(&:pid).each_with_index do |pid, number|
      release(holds.find { |one| one.pid == pid })
      yield number, pid
      holds << hold unless number == holds.size - 1
      holds.reject!(&:released)
    end
  ensure
    holds&.each { |one| release(one) unless one.released }
  end

  Hold = Struct.new(:name, :thread, :pid, :released)

  def hold
    name = "#{@holds.size}-#{Process.pid}"
    @holds << name
    thread = Thread.new { JSON.parse(@server.get("/hold?name=#{name}").body)["worker"] }
    path = File.join(@folder, "held-#{name}")
    wait_until(message: "a worker that is held") { File.exist?(path) }
    Hold.new(name, thread, File.read(path).to_i, false)
  end

  def release(hold)
    hold.released = true
    File.write(File.join(@folder, "release-#{hold.name}"), "")
    assert_equal hold.pid, hold.thread.value
  end

  # --- clients

  # @param each [Integer] how many clients each worker is to have at least
  def connect_to_each_worker(each)
    wait_until_subscribed
    on_each_worker do |_, pid|
      missing = each - @clients.count { |client| client.worker == pid }
      missing.times { connect(pid) }
    end
    wait_until(message: "a count of the connections") { @server.workers.all? { |one| connections_of(one.pid) >= each } }
  end

  def connect(pid)
    client = Support::CableClient.new(@server.method(:connect))
    @clients << client
    wait_until(message: "a subscription") { client.subscribed? }
    assert_equal pid, client.worker
  end

  def wait_until_subscribed
    wait_until(message: -> { "clients that are subscribed: #{@clients.map(&:session)}" }) do
      alive = @server.workers.map(&:pid)
      @clients.all? { |client| client.subscribed? && alive.include?(client.worker) }
    end
  end

  # What the monitor knows of it.
  def connections_of(pid)
    status = JSON.parse(pando("status", "--control", "control.sock", "--format", "json"))
    status.fetch("processes").find { |process| process["pid"].to_i == pid }&.fetch("connections", 0).to_i
  end

  # --- broadcasts

  Sent = Struct.new(:text, :worker, :begun_at, :done_at)

  def broadcast(text)
    begun_at = now
    response = @server.get("/broadcast?text=#{text.tr(" ", "+")}")
    assert_equal 200, response.status, response.body
    Sent.new(text, JSON.parse(response.body)["worker"], begun_at, now)
  end

  def broadcast_from_each_worker
    @server.wait_for_leavers
    wait_until_subscribed
    on_each_worker do |number, pid|
      text = "number #{number} of #{pid} at #{now}"
      assert_equal pid, broadcast(text).worker
      wait_until(message: -> { "#{text} at each client: #{@clients.map(&:session)}" }) do
        @clients.all? { |client| client.received?(text) }
      end
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

  def assert_all_delivered
    wait_until_subscribed
    lost = @clients.flat_map(&:sessions).select(&:confirmed_at).flat_map do |session|
      owed(session).reject { |sent| session.texts.include?(sent.text) }
                   .map { |sent| [sent, session.to_h.slice(:worker, :confirmed_at, :ended_at)] }
    end
    assert_empty lost
    assert_operator @sent.size, :>, 20
  end

  # What a worker has queued when it ends is written first.
  def assert_last_words_are_stored
    stored = JSON.parse(@server.get("/stored").body)
    gone = @server.events("worker.exited").map { |event| event["pid"] }

    assert_operator gone.size, :>=, WORKERS
    assert_empty(gone.reject { |pid| stored.include?("last words of #{pid}") })
  end

  # What was broadcast while a session was subscribed.
  def owed(session)
    last = session.ended_at || (now - ON_ITS_WAY)
    @sent.select { |sent| sent.begun_at > session.confirmed_at + DEAF[@adapter] && sent.done_at < last - ON_ITS_WAY }
  end

  # --- good-byes

  def assert_reforked_in_spite_of_connections
    started = @server.events("refork.started")

    assert_operator started.size, :>=, REFORKS
    assert started.last(REFORKS).all? { |event| event["choice"].include?("parts with") }, started.to_s
  end

  def assert_farewells_at_stop
    left = @clients.count(&:subscribed?)
    seen = @clients.map(&:sessions).sum(&:size)
    assert_predicate @server.stop, :success?
    wait_until { @clients.all? { |client| client.sessions.none?(&:subscribed?) } }
    assert_operator left, :>=, WORKERS
    assert_operator seen, :>, @clients.size
    assert_farewells
  end

  # Each connection that ended was told so, in Rails' words.
  def assert_farewells
    ended = @clients.flat_map(&:sessions).select { |session| session.confirmed_at && session.ended_at }

    refute_empty ended
    assert_empty ended.select(&:cut_off?)
    ended.each do |session|
      assert_equal({ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, session.farewell)
    end
  end

  def pando(*arguments)
    command = [RbConfig.ruby, "-I", Support::Checkout.path("lib"), Support::Checkout.path("exe/pando"), *arguments]
    IO.popen(command, chdir: @server.folder, &:read)
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
