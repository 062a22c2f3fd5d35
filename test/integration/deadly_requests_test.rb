# frozen_string_literal: true

require "test_helper"
require "support/server_process"

# Requests that end their worker, or leave one too many: the mold is not to blame.
class DeadlyRequestsTest < Minitest::Test
  APP = <<~RUBY
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/exit" then exit!(4)
      when "/abort" then Process.kill(:ABRT, Process.pid) && sleep
      when "/fork" then fork
      when "/string" then next [200, {}, "no body"]
      when "/inspect" then next [200, {}, [env.inspect]]
      end
      [200, {}, [Process.pid.to_s]]
    end)
  RUBY

  def setup
    @server = Support::ServerProcess.start(app: APP, config: "workers 1\nrefork :manual")
  end

  def teardown
    @server.kill
  end

  def get(path) = @server.get(path)

  def test_workers_that_die_of_their_requests_are_replaced_at_once_and_for_ever
    12.times do
      assert_equal 502, get("/exit").status
      assert_equal 200, get("/").status
    end
    3.times { assert_equal 502, get("/abort").status }

    assert_equal 200, get("/").status
    assert_empty @server.events("generation.discarded")
    assert_equal(["GET /exit"], @server.events("worker.lost").first(12).map { |event| event["request"] }.uniq)
  end

  def test_a_child_that_comes_back_from_a_request_does_not_serve
    worker = @server.workers.first.pid.to_s
    event = @server.wait_for("orphan.exited") { assert_equal worker, get("/fork").body }

    assert_equal worker.to_i, event["parent"]
    assert_equal([worker], Array.new(10) { get("/").body }.uniq)
    assert_equal [worker.to_i], @server.workers.map(&:pid)
    assert_predicate @server.stop, :success?
  end

  def test_a_body_that_is_none_is_an_error_before_anything_is_sent
    assert_equal 500, get("/string").status
    assert_match(/neither each nor call/, @server.wait_past("request.failed")["error"].to_s)
  end

  def test_the_environment_can_be_shown
    assert_operator get("/inspect").body.bytesize, :<, 2000
  end
end
