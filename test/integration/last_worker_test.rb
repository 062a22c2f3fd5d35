# frozen_string_literal: true

require "test_helper"
require "support/servers"

# The only worker that serves, and no mold to fork another from: it does not go of its own will.
class LastWorkerTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~RUBY
    run(lambda do |env|
      sleep if env["PATH_INFO"] == "/slow"
      [200, {}, [Process.pid.to_s]]
    end)
  RUBY

  [true, false].each do |reactor|
    define_method(:"test_after_a_timeout_it_serves_on_#{reactor ? "behind_the_reactor" : "in_direct_mode"}") do
      server = alone("timeout 1, grace: 20\nreactor #{reactor}")
      pid = server.get("/").body
      assert_equal([504, 504], Array.new(2) { server.get("/slow").status })
      assert_equal([pid], Array.new(5) { server.get("/").body }.uniq)
      leaving = server.wait_for("worker.leaving", pid: Integer(pid)) { server.write("config.ru", APP) }

      assert_equal("timeout", leaving["reason"])
      server.wait_past("worker.exited", pid: Integer(pid))
      refute_equal(pid, server.get("/").body)
      assert_predicate(server.stop, :success?)
      assert_empty(server.events("worker.lost"))
    end
  end

  def test_who_is_told_from_outside_goes
    server = alone("")
    exited = server.wait_for("worker.exited") { Process.kill("TERM", server.workers.first.pid) }

    assert_equal(0, exited["slot"])
  end

  private

  # Its mold is gone, and the application boots no more.
  def alone(config)
    server = serve(app: APP, config: "workers 1\nrefork false\n#{config}")
    server.write("config.ru", "raise 'half a deployment'")
    server.wait_for("generation.discarded") { Process.kill("KILL", server.mold.pid) }
    server
  end
end
