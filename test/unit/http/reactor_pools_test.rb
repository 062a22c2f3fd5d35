# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_case"

# Workers that serve some paths only, and the others: which of them gets a request.
class HTTPReactorPoolsTest < Minitest::Test
  include HTTPSupport::ReactorCase

  # Lane 0 belongs to the pool of all other paths, lane 1 to that of the reports.
  def setup
    super
    stage(lanes: 0, pools: 2, pool_paths: "1/reports,0/reports/small,1/slow/", max_queue: 2, queue_timeout: 200,
          last_queue_timeout: 60_000)
    @stage.ok("open", 0, 0)
    @stage.ok("open", 1, 1)
  end

  def test_a_path_and_all_below_it
    { "/reports" => 1, "/reports/7?x=/" => 1, "/slow/7" => 1, "/reports?small" => 1,
      "/" => 0, "/reportsx" => 0, "/slow" => 0, "/Reports" => 0, "/x/reports" => 0, "/?/reports" => 0 }
      .each { |path, lane| assert_served(lane, path) }
  end

  def test_the_longest_path_counts
    assert_served(0, "/reports/small/1")
    assert_served(1, "/reports/smaller")
  end

  # The lane of the others is idle all the time.
  def test_requests_wait_for_the_workers_of_their_pool
    busy = taken(1, "/reports")
    ask("/reports/2")
    wait_until { waiting == 1 }

    assert_equal("0", @stage.tell("offered", 0))
    assert_served(0, "/")
    @stage.answer(busy)
    assert_equal("/reports/2", @stage.take(1).path)
  end

  def test_each_has_a_queue_of_its_own
    taken(1, "/reports")
    2.times { ask("/reports") }
    wait_until { waiting == 2 }

    assert_match(%r{\AHTTP/1.1 503 }, ask("/reports").read)
    assert_served(0, "/")
  end

  def test_each_has_a_queue_timeout_of_its_own
    [taken(0, "/"), taken(1, "/reports")]
    patient = ask("/reports")

    assert_match(%r{\AHTTP/1.1 503 }, ask("/").read)
    wait_until { waiting == 1 }
    assert_nil(patient.wait_readable(0))
  end

  def test_a_request_of_a_dead_worker_waits_for_another_one_of_its_pool
    taken(1, "/reports")
    @stage.ok("dead", 1, 0)
    wait_until { waiting == 1 }
    assert_equal("0", @stage.tell("offered", 0))
    @stage.ok("open", 1, 1)

    assert_equal("/reports", @stage.take(1).path)
  end

  def test_a_pool_that_the_reactor_does_not_know_is_an_error_of_the_monitor
    @stage.ok("open", 2, 2)

    assert_equal("end", @stage.tell("report"))
  end

  private

  def ask(path) = request("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
  def waiting = @stage.stats.fetch("queued")

  def taken(lane, path)
    ask(path)
    @stage.take(lane).tap { |taken| assert_equal(path, taken.path) }
  end

  def assert_served(lane, path)
    client = ask(path)
    @stage.answer(@stage.take(lane), path)
    assert_equal(path, body_of(client))
  end
end
