# frozen_string_literal: true

require "test_helper"
require "etc"
require "support/kept_connection"
require "support/scribbling_app"
require "support/servers"

# Promise: what a worker shares with others it cannot write, but for its own lane and its own row; and a server that
# lives and answers nobody notices that.
class ScribblesTest < Minitest::Test
  include Support::Servers

  # The worker's part of a lane, as http/lane.h has it.
  LANE = 704 + 131_072
  ROW = 896 + (65 * 192) # struct pando_row: a line for each fact, and 65 jobs

  def start(config)
    @server = serve(app: Support::ScribblingApp::TEXT, config: "refork :manual\n#{config}")
  end

  def teardown
    @waiting&.close
    super
  end

  def in_pages(bytes) = (bytes / Etc.sysconf(Etc::SC_PAGESIZE).to_f).ceil * Etc.sysconf(Etc::SC_PAGESIZE)
  def writable = @server.get("/writable").body.split("\n")

  def test_a_worker_writes_its_own_lane_and_its_own_row
    start("workers 2")
    expected = ["pando-lane #{in_pages(LANE)}", "pando-scoreboard #{in_pages(ROW)}"]

    assert_equal expected, writable.sort
    @server.refork
    assert_equal expected, writable.sort, "in a worker that was forked from a worker's child"
  end

  def test_without_a_reactor_its_row_alone
    start("workers 2\nreactor false")

    assert_equal ["pando-scoreboard #{in_pages(ROW)}"], writable
  end

  def test_a_child_of_a_worker_has_no_lane
    server = serve(app: <<~RUBY, config: "workers 1")
      run lambda { |env|
        pid = fork { exit!(File.read("/proc/self/maps").include?("memfd:pando-lane") ? 1 : 0) }
        returned = fork or next [200, {}, ["of a child"]]
        [200, {}, [[pid, returned].map { |one| Process.wait2(one).last.exitstatus.inspect }.join(" ")]]
      }
    RUBY
    pid = server.workers.first.pid

    assert_match(/\A0 /, server.get("/").body)
    assert_equal pid, server.workers.first.pid
    server.wait_past("orphan.exited") # it came back from its request
    assert_equal(["orphan.exited"], server.complaints.map { |event| event["event"] })
  end

  def test_a_worker_that_lives_and_takes_nothing
    start("workers 1")
    assert_equal 200, @server.get("/refuse").status
    refused = @server.workers.first.pid
    @waiting = Support::KeptConnection.new(@server.connect).ask("/")

    assert_equal 200, @waiting.answer.status
    refute_equal refused, @server.workers.first.pid
    assert_equal "worker", @server.wait_past("queue.blocked")["replaced"]
  end

  def test_one_of_a_pool_while_another_pool_answers
    start("workers 1\npool :others, paths: ['/refuse', '/others']")
    assert_equal 200, @server.get("/refuse").status
    @waiting = Support::KeptConnection.new(@server.connect).ask("/others")
    answered = Thread.new { @waiting.answer.status }
    assert_equal(200, @server.get("/").status) while answered.alive?

    assert_equal 200, answered.value
    assert_equal %w[others worker], @server.wait_past("queue.blocked").values_at("pool", "replaced")
  end
end
