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

  def refork_web
    @server.wait_for_leavers
    wait_until(message: -> { "a refork of web: #{@said}" }) do
      @said, done = pando("refork", "web")
      done
    end
  end

  def reforks = @server.events("refork.started")
  def live = @server.nodes("live").max_by { |process| process.title[/gen (\d+)/, 1].to_i }.pid
end
