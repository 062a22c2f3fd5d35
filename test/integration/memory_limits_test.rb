# frozen_string_literal: true

require "test_helper"
require "support/servers"

# A worker that grows does not take the machine with it.
class MemoryLimitsTest < Minitest::Test
  include Support::Servers

  # /leak keeps a mebibyte a request; /hog keeps on taking.
  APP = <<~RUBY
    LEAK = []
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/leak" then LEAK << ("x" * 1_048_576)
      when "/hog" then loop { LEAK << ("x" * 1_048_576) && sleep(0.005) }
      end
      [200, {}, [Process.pid.to_s]]
    end)
  RUBY

  def test_a_leaking_worker_is_replaced_between_two_requests
    server = serve(app: APP, config: "workers 1\nrefork false\nmemory worker: 60.mb")
    first = server.get("/leak").body
    leaving = server.wait_for("worker.leaving") do
      leaker = Thread.new { loop { break if server.get("/leak").body != first } }
      server.wait_past("worker.leaving")
      leaker.join(60)
    end

    assert_match(/of private memory are over the limit of 60.0 MiB\z/, leaving["reason"])
    assert_equal(Integer(first), leaving["pid"])
    assert_empty(server.events("worker.lost") + server.events("worker.killed"))
  end

  def test_a_request_that_takes_too_much_is_ended_and_not_tried_again
    server = serve(app: APP, config: "workers 2\nrefork false\nmemory hard: 80.mb\ntimeout 60")
    answer = server.get("/hog")

    assert_equal(502, answer.status)
    killed = server.wait_past("worker.killed")
    assert_equal("GET /hog", killed["request"])
    assert_match(/over the hard limit of 80.0 MiB/, killed["reason"])
    assert_equal(1, server.events("worker.killed").size, "the request was given to nobody else")
    assert_equal(200, server.get("/").status)
  end

  def test_of_all_the_fattest_goes_when_the_tree_is_too_big
    server = serve(app: APP, config: "workers 3\nrefork false\nmemory total: 150.mb")
    Thread.new { loop { server.get("/leak") } }.report_on_exception = false
    leaving = server.wait_past("worker.leaving")

    assert_match(/\Aall processes together take \d+.\d MiB of 150.0 MiB, and of all workers it has most/,
                 leaving["reason"])
  end
end
