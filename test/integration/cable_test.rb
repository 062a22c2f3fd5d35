# frozen_string_literal: true

require "test_helper"
require "support/cable_stage"

# Action Cable across reforks, reloads and the stop, with the newest Rails that this Ruby runs. PANDO_CABLE_REFORKS and
# PANDO_CABLE_RELOADS say how many of each.
class CableTest < Minitest::Test
  include Support::CableStage

  LIBRARIES = %w[actioncable nio4r solid_cable].freeze
  WORKERS = 2
  REFORKS = Integer(ENV.fetch("PANDO_CABLE_REFORKS", 3))
  RELOADS = Integer(ENV.fetch("PANDO_CABLE_RELOADS", 1))

  def test_solid_cable = assert_nothing_is_lost("solid_cable") { assert_last_words_are_stored }
  def test_solid_cable_with_threads = assert_nothing_is_lost("solid_cable", threads: 5) { assert_last_words_are_stored }
  def test_redis = assert_nothing_is_lost("redis")
  def test_redis_with_threads = assert_nothing_is_lost("redis", threads: :auto)
  def test_postgresql = assert_nothing_is_lost("postgresql")

  # That adapter delivers within one process; in development there is one worker.
  def test_async_in_development
    start("async", workers: 1, environment: "development", config: "reactor false")
    connect_to_each_worker(1)
    2.times do
      @server.refork
      broadcast_to_the_subscribed
    end

    assert_operator @server.events("refork.finished").size, :>=, 2
    assert_empty(@server.events.select { |event| event["level"] == "error" })
    assert_farewells
  end

  def test_a_worker_without_connections_is_preferred
    start("async")
    on_each_worker do |pid|
      connect(pid) if @clients.empty?
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
  def assert_nothing_is_lost(adapter, threads: 1)
    start(adapter, workers: WORKERS, config: <<~RUBY)
      threads #{threads.inspect}
      before_worker_exit { ActionCable.server.broadcast("notes", { text: "last words of \#{Process.pid}" }) }
    RUBY
    connect_to_each_worker(2)
    broadcast_to_the_subscribed
    publishing do
      REFORKS.times { refork_and_broadcast }
      RELOADS.times { reload && broadcast_to_the_subscribed }
    end
    wait_until_subscribed
    assert_all_delivered
    yield if block_given?
    assert_reforked_in_spite_of_connections
    assert_no_trouble
    assert_farewells_at_stop
  end

  def refork_and_broadcast
    connect_to_each_worker(1)
    @server.refork
    broadcast_to_the_subscribed
  end

  def broadcast_to_the_subscribed
    @server.wait_for_leavers
    wait_until_subscribed
    broadcast_from_each_worker
  end

  # What a worker has queued when it ends is written first.
  def assert_last_words_are_stored
    stored = JSON.parse(@server.get("/stored").body)
    gone = @server.events("worker.exited").map { |event| event["pid"] }

    assert_operator gone.size, :>=, WORKERS
    assert_empty(gone.reject { |pid| stored.include?("last words of #{pid}") })
  end

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
end
