# frozen_string_literal: true

require "test_helper"
require "support/cable_stage"

# Action Cable in a pool of its own: the WebSockets are in one worker, and the workers of the pool `web`, which
# broadcast, are reforked without it. PANDO_CABLE_REFORKS and PANDO_CABLE_RELOADS say how many of each.
class CablePoolTest < Minitest::Test
  include Support::CableStage

  POOL = 'pool :live, paths: ["/cable", "/selector"], workers: 1, threads: 64, refork: false'
  CLIENTS = 6
  REFORKS = Integer(ENV.fetch("PANDO_CABLE_REFORKS", 3))
  RELOADS = Integer(ENV.fetch("PANDO_CABLE_RELOADS", 1))

  def test_solid_cable = assert_reforks_are_not_felt("solid_cable")
  def test_redis = assert_reforks_are_not_felt("redis")

  def test_solid_cable_with_drain = assert_replaced_workers_keep_their_clients("solid_cable")
  def test_redis_with_drain = assert_replaced_workers_keep_their_clients("redis")

  # Those that are left are told to connect again.
  def test_the_time_of_drain_is_over
    start("redis", config: "#{POOL}, drain: 1")
    CLIENTS.times { connect(live) }
    publishing { RELOADS.times { reload_and_reconnect } }
    assert_all_delivered
    assert_no_trouble
    assert_farewells
    assert_equal([1], @clients.map { |client| client.sessions.count(&:ended_at) / RELOADS }.uniq)
  end

  # Neither its selector nor its WebSockets concern the other pool.
  def test_a_selector_in_the_pool
    start("async", workers: 1, config: POOL)
    connect(live)
    unsafe = @server.wait_for("worker.unsafe") { @server.get("/selector") }
    refork_web

    assert_equal(["live", live], unsafe.values_at("pool", "pid"))
    assert_equal([live], @clients.flat_map(&:sessions).map(&:worker))
    assert_predicate(@clients.first, :subscribed?)
  end

  private

  # What the workers of `web` broadcast reaches all clients after each refork, over the WebSockets that they had.
  def assert_reforks_are_not_felt(adapter)
    start(adapter, config: "threads 5\n#{POOL}")
    CLIENTS.times { connect(live) }
    broadcast_from_each_worker
    publishing do
      assert_no_client_reconnects { REFORKS.times { refork_web && broadcast_from_each_worker } }
      RELOADS.times { reload_and_reconnect }
    end
    assert_all_delivered
    assert_no_trouble
    assert_predicate(@server.stop, :success?)
    wait_until { @clients.none?(&:subscribed?) }
    assert_farewells
  end

  def assert_no_client_reconnects
    before = @clients.map { |client| client.sessions.size }
    holder = live
    yield
    assert_equal([before, [holder]], [@clients.map { |client| client.sessions.size }, @clients.map(&:worker).uniq])
    assert_equal(CLIENTS, wait_until { connections_of(holder).then { |count| count if count == CLIENTS } })
    assert_equal([%w[web], REFORKS], [reforks.map { |event| event["pool"] }.uniq, reforks.size])
    assert_empty(reforks.select { |event| event["choice"].include?("parts with") })
  end

  def reload_and_reconnect
    holder = live
    assert_equal("reload.finished", reload["event"])
    refute_equal(holder, live)
    @server.wait_for_leavers
    wait_until_subscribed([live])
    broadcast_from_each_worker
  end

  # Clients stay where they are, hear what `web` broadcasts, and new ones come to the new worker.
  def assert_replaced_workers_keep_their_clients(adapter)
    start(adapter, config: "#{POOL}, drain: 600")
    CLIENTS.times { connect(live) }
    publishing { RELOADS.times { reload_and_keep } }
    assert_all_delivered
    assert_equal([1], @clients.map { |client| client.sessions.size }.uniq, "a client had to connect again")
    assert_the_last_client_ends_its_worker(@clients.first.worker)
    assert_no_trouble
    assert_predicate(@server.stop, :success?)
    wait_until { @clients.none?(&:subscribed?) }
    assert_farewells
  end

  def reload_and_keep
    holder = live
    assert_equal("reload.finished", reload["event"])
    refute_equal(holder, live)
    2.times { connect(live) }
    broadcast_from_each_worker
    refork_web
    broadcast_from_each_worker
    assert_counted
  end

  # In each process, and in all.
  def assert_counted
    held = @clients.map(&:worker).tally
    wait_until(message: -> { "#{held} in #{status["processes"]}" }) do
      held.all? { |pid, count| connections_of(pid) == count }
    end
    pool = status["pools"].find { |one| one["name"] == "live" }
    assert_equal([@clients.size, @clients.size - held[live]], pool.values_at("live_connections", "leaving_connections"))
    assert_equal(held.keys - [live], status["processes"].select { |one| one["drain_left"] }.map { |one| one["pid"] })
  end

  def assert_the_last_client_ends_its_worker(holder)
    leaving, others = @clients.partition { |client| client.worker == holder }
    @clients = others
    @server.wait_for("worker.exited", pid: holder) { leaving.each(&:close) }
    assert_empty(leaving.flat_map(&:faults))
    assert(others.all?(&:subscribed?))
  end

  def refork_web
    @server.wait_for_leavers
    wait_until(message: -> { "a refork of web: #{@said}" }) { (@said = ask("refork", pool: "web")).first == "ok" }
  end

  def reforks = @server.events("refork.started")
  def live = @server.nodes("live").max_by { |process| process.title[/gen (\d+)/, 1].to_i }.pid
end
