# frozen_string_literal: true

require "test_helper"
require "support/kept_connection"
require "support/scribbling_app"
require "support/servers"

# Promise: what a worker writes where it must not costs others at most a moment.
class ScribblesTest < Minitest::Test
  include Support::Servers

  # Of the channel, as http/channel.h has it.
  DRAINING = 80
  PUBLISHED = 128
  TAKEN = 192
  LANES = 256 + (4096 * 8) + (1024 * (128 + 16_384))
  LANE = 192 + 131_072
  WRITTEN = 64

  def start(config)
    @server = serve(app: Support::ScribblingApp::TEXT, config: "refork :manual\n#{config}")
  end

  def teardown
    @connections&.each(&:close)
    super
  end

  def scribble(offset, bytes) = @server.get("/scribble?pando-channel&#{offset}&#{bytes.unpack1("H*")}")

  # The connection of a request that waits.
  def ask(path)
    Support::KeptConnection.new(@server.connect).ask(path).tap { |one| (@connections ||= []) << one }
  end

  def test_a_worker_that_lives_and_takes_nothing
    start("workers 1")
    assert_equal 200, @server.get("/refuse").status
    refused = @server.workers.first.pid
    waiting = ask("/")

    assert_equal 200, waiting.answer.status
    refute_equal refused, @server.workers.first.pid
    assert_equal "worker", @server.wait_past("queue.blocked")["replaced"]
  end

  # Whoever is born finds a lane that it cannot use.
  def test_lanes_that_are_damaged_before_they_have_an_owner
    start("workers 2")
    (2..8).each { |lane| scribble(LANES + (lane * LANE) + WRITTEN, "\xff".b * 8) }
    statuses = []
    @server.wait_for("worker.ready") do
      Process.kill("KILL", @server.workers.first.pid)
      statuses << ask("/").answer.status until @server.events("worker.ready").size > 2
    end
    statuses.concat(Array.new(40) { ask("/") }.map { |one| one.answer.status })

    assert_equal [200], statuses.uniq
  end

  def test_counters_of_the_queue_that_are_zero
    start("workers 1\nmax_queue 3")
    8.times { @server.get("/") }
    scribble(PUBLISHED, "\0" * (TAKEN + 8 - PUBLISHED))

    assert_equal([200] * 8, Array.new(8) { @server.get("/").status })
  end

  def test_a_reactor_that_seems_to_drain
    start("workers 1")
    scribble(DRAINING, "\1\0\0\0")
    @server.get("/") # the reactor has taken a turn

    refute_predicate ask("/").answer, :last?
  end
end
