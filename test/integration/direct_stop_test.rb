# frozen_string_literal: true

require "test_helper"
require "support/servers"

# A stop in direct mode: waiting clients are served, later ones are refused at once.
class DirectStopTest < Minitest::Test
  include Support::Servers

  APP = <<~RUBY
    run lambda { |env|
      File.write("busy", "") if env["PATH_INFO"] == "/gate"
      hold_until("open") if env["PATH_INFO"] == "/gate"
      [200, {}, ["done"]]
    }
  RUBY

  def test_who_comes_late_does_not_wait_for_the_slowest
    server = serve(app: APP, config: "reactor false\nworkers 2")
    held = server.connect.tap { |socket| socket.write("GET /gate HTTP/1.1\r\nHost: a\r\n\r\n") }
    wait_until { File.exist?(File.join(server.folder, "busy")) }
    server.wait_for("worker.exited") { server.signal("TERM") }

    assert_raises(Errno::ECONNREFUSED) { server.connect.then { |socket| socket.read(1) } }
    server.write("open", "")
    assert_match(/done\z/, held.read)
    assert_equal 0, server.wait_past("monitor.stopped")["status"]
    assert_empty(server.complaints)
  end
end
