# frozen_string_literal: true

require "test_helper"
require "support/keep_alive_load"
require "support/kept_connection"
require "support/servers"

# Promise: a TERM that goes to all processes of the server, as from a control group or the group of a shell, loses
# nothing that a TERM to the monitor alone would not.
class GroupStopTest < Minitest::Test
  include Support::Servers

  # /held answers when the file "go" is there.
  APP = <<~'RUBY'
    run lambda { |env|
      hold_until("go") if env["PATH_INFO"] == "/held"
      [200, { "content-type" => "text/plain" }, ["#{Process.pid}"]]
    }
  RUBY

  def start(config, **options) = serve(app: APP, config: "workers 2\nrefork :manual\n#{config}", **options)

  def tell_all(server)
    all = [*server.tree.titled("worker"), *server.tree.titled("mold"), *server.tree.titled("reactor")].map(&:pid)
    [*all, server.pid].each { |pid| Process.kill("TERM", pid) } # the monitor hears of it last
  end

  { "behind_the_reactor" => "", "in_direct_mode" => "reactor false" }.each do |where, config|
    define_method("test_what_waits_is_served_#{where}") do
      server = start(config)
      clients = Array.new(30) { Support::KeptConnection.new(server.connect) }
      held = clients.first(2)
      waiting = clients.drop(2)
      held.each { |client| client.ask("/held") }
      server.wait_until_busy(2)
      waiting.each { |client| client.ask("/") }
      server.wait_for("monitor.stopping", reason: "TERM") { tell_all(server) }
      server.write("go", "")

      assert_equal [200], clients.map { |client| client.answer.status }.uniq
      assert_equal 0, server.wait_for_exit.exitstatus
      assert_empty server.complaints
    ensure
      clients&.each(&:close)
    end
  end

  def test_nobody_leaves_before_the_delay_is_over
    server = start("drain_delay 300")
    load = Support::KeepAliveLoad.start(server.method(:connect), clients: 3)
    load.wait_for_more(100)
    server.wait_for("drain.started", reason: "TERM") { tell_all(server) }
    load.wait_for_more(300)
    load.stop

    assert_empty load.failures
    assert_empty server.events("worker.leaving")
    server.wait_for("monitor.stopping") { server.signal_again("TERM") }
    assert_equal 0, server.wait_for_exit.exitstatus
  end
end
