# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/http"
require_relative "support/served_work"
require_relative "support/fake_worker"

# The request that a worker sends itself before it takes traffic.
class HTTPSelfTestTest < Minitest::Test
  Failed = Pando::HTTP::SelfTest::Failed

  # @return [FakeWorker] of a work that has started
  def start(status: 200, body: ["up"], self_test: "GET /up?now=1", &app)
    app ||= ->(env) { (@env = env) && [status, { "content-type" => "text/plain" }, body] }
    @served = HTTPSupport::ServedWork.new(app, self_test: self_test)
    @served.worker
  end

  def teardown
    @served&.listener&.close
    super
  end

  def test_it_goes_through_everything
    worker = start

    assert_equal(["GET", "/up", "now=1", "localhost"],
                 @env.values_at("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "HTTP_HOST"))
    assert_equal(%i[job_started job_deadline job_finished forget_jobs],
                 worker.calls.map(&:first) - [:run_hook], "with its deadlines, and it does not count")
  end

  def test_without_one_nothing_is_called
    start(self_test: nil)

    assert_nil @env
  end

  def test_any_status_below_500_will_do
    [204, 302, 404].each { |status| start(status: status, body: []) }

    assert_equal "/up", @env["PATH_INFO"]
  end

  def test_an_answer_larger_than_any_buffer
    start(body: ["x" * 3_000_000])

    assert_equal "/up", @env["PATH_INFO"]
  end

  # What a canary may ask for on a quiet server.
  def test_safe_paths_are_requested_one_after_the_other_and_do_not_count
    asked = []
    app = lambda do |env|
      asked << [env["REQUEST_METHOD"], env["PATH_INFO"], env["QUERY_STRING"]]
      [env["PATH_INFO"] == "/" ? 200 : 302, {}, []]
    end
    @served = HTTPSupport::ServedWork.new(app, rollout_safe_paths: ["/", "/products?page=2"])

    assert_equal("GET / 200, GET /products?page=2 302", @served.work.try_out)
    assert_equal([["GET", "/", ""], ["GET", "/products", "page=2"]], asked)
    assert_equal(0, @served.worker.requests)
  end

  # A client's requests and their record are not forgotten with it.
  def test_after_a_clients_request_it_counts
    worker = start(self_test: nil)
    worker.job_finished
    @served.work.instance_variable_set(:@safe_paths, ["/"])
    @served.work.try_out

    assert_equal(2, worker.requests)
  end

  def test_without_safe_paths_nothing_is_requested
    start(self_test: nil)

    assert_equal("", @served.work.try_out)
    assert_nil @env
  end

  def test_a_safe_path_that_fails
    start(self_test: nil, status: 503)
    @served.work.instance_variable_set(:@safe_paths, ["/"])

    assert_equal("the replay of GET / was answered with 503", assert_raises(Failed) { @served.work.try_out }.message)
  end

  def test_what_fails
    assert_match(/was answered with 503/, assert_raises(Failed) { start(status: 503) }.message)
    assert_match(/answered with 500/, assert_raises(Failed) { start { |_| raise IOError, "no database" } }.message)
    assert_match(/had no response/, assert_raises(Failed) { start { |env| env["rack.hijack"].call.close } }.message)
  end
end

class HTTPWarmUpTest < Minitest::Test
  include HTTPSupport::Events

  WarmUp = Pando::HTTP::WarmUp

  def listener = @listener ||= TCPServer.new("127.0.0.1", 0)
  def teardown = @listener&.close

  def warm_up = WarmUp.run(HTTPSupport.settings, listener)

  # A failure would go unnoticed: nothing depends on it.
  def test_the_request_is_answered
    ours, theirs = UNIXSocket.pair
    ours.write(WarmUp::REQUEST)
    WarmUp.send(:serve, HTTPSupport.settings, listener, theirs)
    theirs.close
    head, body = ours.read.split("\r\n\r\n")

    assert_equal(["HTTP/1.1 200 OK", "well"], [head.lines.first.chomp, body])
  ensure
    [ours, theirs].compact.each(&:close)
  end

  def test_it_leaves_nothing_behind
    trap("URG", "DEFAULT") # other tests have left a handler
    warm_up
    GC.disable # which would close what other tests have left
    before = [Dir.children("/proc/self/fd"), trap("URG", "DEFAULT")]
    seen = events_of { warm_up }

    assert_equal(before, [Dir.children("/proc/self/fd"), trap("URG", "DEFAULT")])
    assert_empty(seen)
  ensure
    GC.enable
  end

  def test_what_goes_wrong_is_passed_over
    assert_nil(WarmUp.run(nil, listener))
    assert_nil(WarmUp.run(HTTPSupport.settings, nil))
  end
end
