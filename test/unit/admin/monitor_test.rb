# frozen_string_literal: true

require "test_helper"
require "pando/admin/monitor"
require "support/waiting"

# How the admin process asks the monitor.
class AdminMonitorTest < Minitest::Test
  include Support::Waiting

  # A monitor that hangs: nobody answers at the other end.
  def setup
    @theirs = []
    @monitor = Pando::Admin::Monitor.new { |socket| @theirs << socket.dup }
  end

  def teardown = @theirs.each(&:close)

  # All of them have waited for the same answer, which did not come: none waits for another one.
  def test_several_that_wait_for_a_monitor_that_hangs
    threads = Array.new(4) { Thread.new { @monitor.snapshot rescue $!.message } } # rubocop:disable Style
    wait_until { @theirs.any? && threads.all? { |thread| thread.status == "sleep" } }
    @theirs.first.close # it breaks off

    assert_equal(["the monitor does not answer: the server is gone"], threads.map(&:value).uniq)
    assert_equal(1, @theirs.size)
  end
end

# What the admin process makes of the monitor's records.
class AdminSnapshotTest < Minitest::Test
  SERVER = ["server", { "pid" => "1", "state" => "serving", "ready" => "2" }].freeze

  def test_requests_are_welcome_where_a_worker_is_ready
    assert_nil(obstacle)
    assert_nil(obstacle(pool(:web, 1), pool(:live, 0), pool(:jobs, 0, "node")))
    assert_equal("the server is draining", Pando::Admin::Snapshot.new([["server", { "state" => "draining" }]]).obstacle)
  end

  # Job nodes and the workers of other pools serve no request of the first one.
  def test_no_request_is_welcome_without_a_worker_of_the_first_pool
    assert_equal("no worker is ready", obstacle(pool(:web, 0), pool(:live, 1), pool(:jobs, 2, "node")))
  end

  def test_a_server_of_nodes_alone_is_ready_with_any_of_them
    assert_nil(obstacle(pool(:mails, 0, "node"), pool(:reports, 2, "node")))
  end

  private

  def obstacle(*pools) = Pando::Admin::Snapshot.new([SERVER, *pools]).obstacle

  def pool(name, ready, kind = "worker")
    ["pool", { "name" => name.to_s, "kind" => kind, "ready" => ready.to_s }]
  end
end
