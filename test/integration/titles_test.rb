# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: `ps` says what each process is and does, and shows nothing that a request brought.
class TitlesTest < Minitest::Test
  include Support::Servers

  APP = <<~RUBY
    run lambda { |env|
      hold_until("go") if env["PATH_INFO"] == "/hold"
      [200, {}, ["done"]]
    }
  RUBY

  def test_name_role_slot_generation_and_state
    server = serve(app: APP, config: "workers 2\nrefork :manual\nservice(:mailer) { |service| service.wait(60) }")
    server.wait_past("service.ready")
    assert_titles(server, ["pando mold gen 0", "pando reactor", "pando service mailer gen 0",
                           "pando worker 0 gen 0 idle", "pando worker 1 gen 0 idle"])
    assert_equal("pando monitor", server.tree.monitor.title)

    server.refork
    assert_titles(server, ["pando mold gen 1", "pando reactor", "pando service mailer gen 1",
                           "pando worker 0 gen 1 idle", "pando worker 1 gen 1 idle"])
  end

  def test_a_busy_worker_is_seen_but_not_what_it_does
    server = serve(app: APP, config: "workers 2\nrefork :manual")
    server.refork
    assert_workers(server, "idle")
    sockets = Array.new(2) { hold(server) }
    assert_workers(server, "busy")
    server.write("go", "")
    sockets.each(&:read)

    assert_workers(server, "idle")
  end

  def test_a_mold_that_boots
    server = serve(app: "sleep", ready: false)
    server.wait_past("mold.booting")

    assert_titles(server, ["pando mold gen 0 booting"])
  end

  private

  # The title is all there is: no environment, path or argument behind it.
  def assert_titles(server, titles)
    wait_until(message: -> { "#{titles}, not #{found(server)}" }) { found(server) == titles }
  end

  def assert_workers(server, state)
    assert_titles(server, ["pando mold gen 1", "pando reactor",
                           "pando worker 0 gen 1 #{state}", "pando worker 1 gen 1 #{state}"])
  end

  def found(server) = server.tree.children.map(&:title).sort

  def hold(server)
    request = "GET /hold?token=secret HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    server.connect.tap { |socket| socket.write(request) }
  end
end
