# frozen_string_literal: true

require "test_helper"
require "support/servers"

# A thread of the application is inside of a section when its worker is to be promoted.
class PreventForkTest < Minitest::Test
  include Support::Servers

  APP = <<~RUBY
    OVER = Queue.new
    run lambda { |env|
      case env["PATH_INFO"]
      when "/over" then OVER.push(true)
      when "/section"
        entered = Queue.new
        Thread.new { Pando.prevent_fork { entered.push(true) && OVER.pop } }
        entered.pop
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  def test_the_promotion_is_put_off
    server = serve(app: APP, config: "workers 1\nrefork :manual")
    inside = server.get("/section").body.to_i
    event = server.wait_for("refork.refused") { server.signal("USR2") }

    assert_match(/inside of Pando\.prevent_fork at .*config\.ru:7/, event["reason"])
    assert_equal [inside], server.workers.map(&:pid), "it serves on"
    assert_empty server.events("generation.discarded")
    server.get("/over")
    server.refork
  end

  # As if the kernel had refused: it is tried again, and nobody is to blame.
  def test_a_mold_that_is_inside_for_a_while
    server = serve(config: <<~RUBY)
      workers 1
      refork :manual
      before_fork do
        next unless File.exist?("section")

        File.delete("section")
        entered = Queue.new
        Thread.new { Pando.prevent_fork { entered.push(true) && hold_until("over") } }
        entered.pop
      end
    RUBY
    server.write("section", "")
    server.wait_for("fork.failed") { Process.kill("TERM", server.workers.first.pid) }
    server.wait_for("worker.ready") { server.write("over", "") }

    assert_empty server.events("generation.discarded")
    assert_empty server.events("mold.discarded")
  end
end
