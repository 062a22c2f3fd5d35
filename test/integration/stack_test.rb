# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/admin_client"
require "support/folder_jobs"
require "support/servers"

# Promise: where a worker stands can be seen at any moment, and the worker goes on.
class StackTest < Minitest::Test
  include Support::Servers
  include Support::FolderJobs

  parallelize_me! # they wait most of the time

  APP = <<~RUBY
    def in_ruby = (sleep(0.01) until File.exist?("go"))
    run lambda { |env|
      in_ruby if env["PATH_INFO"] == "/held"
      "x".crypt("$6$rounds=8000000$saltsalt") if env["PATH_INFO"] == "/native" # keeps the interpreter lock
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  def test_a_worker_at_a_request
    start
    pid = @server.get("/").body
    held("/held") do
      shown, status = stack("0")
      assert_equal(0, status)
      assert_match(%r{\Aworker in slot 0 \(pid #{pid}, generation 0\) is at GET /held for [\d.]+ s\.$}, shown)
      assert_match(/^main thread:\n    \S*config\.ru:1:in .*in_ruby/, shown.sub(/^    .*sleep.*\n/, ""))
    end
    assert_equal(pid, @server.get("/").body)
    assert_match(/is idle\.$/, stack("0").first)
    assert_empty(@server.complaints)
  end

  def test_each_thread_of_a_worker_and_direct_mode
    start("threads 3")
    held("/held") { assert_match(/^thread .*:\n(?:    .*\n)*    \S*config\.ru:1:in .*in_ruby/, stack("0").first) }
    start("reactor false")

    held("/held") { assert_match(/config\.ru:1:in .*in_ruby/, stack("0").first) }
  end

  def test_native_code_that_keeps_the_interpreter_lock
    start
    held("/native") { assert_match(/^It does not answer, so .* Seen from outside:\n.*thread/m, stack("0").first) }
  end

  def test_a_node_at_a_job
    @server = swarm("count: 1", "refork :manual")
    order(@server, "one", "60")
    wait_until { stack("0").first.include?("folder_runner.rb") }
  end

  def test_over_http
    port = free_port
    start("control \"control.sock\"\nadmin \"127.0.0.1:#{port}\"")
    admin = Support::AdminClient.new(@server, port)
    @server.wait_past("admin.ready")
    held("/held") do
      assert_match(/config\.ru:1:in .*in_ruby/, admin.post("/stack?slot=0").body)
      assert_equal("401", admin.post("/stack?slot=0", token: nil).code)
      assert_equal(["409", "there is no worker in slot 7"], told(admin.post("/stack?slot=7")))
      assert_equal(["400", "slot must be a whole number below a billion"], told(admin.post("/stack?slot=-1")))
      assert_equal(["400", "slot is missing"], told(admin.post("/stack")))
      assert_equal(["400", "/stack takes no parameter 'all'"], told(admin.post("/stack?all=1")))
    end
  end

  def test_wrong_use
    start

    assert_equal(["pando: there is no worker in slot 9\n", 1], stack("9"))
    assert_equal(["pando: give the slot of the worker: pando stack SLOT\n", 2], stack)
    assert_equal(["pando: pando stack SLOT: must be a whole number, but is \"x\"\n", 2], stack("x"))
  end

  private

  def start(setting = "") = @server = serve(app: APP, config: "workers 1\nrefork :manual\n#{setting}")

  # Runs the block while the worker is at this request.
  def held(path)
    client = Thread.new { @server.get(path) }
    @server.wait_until_busy(1)
    yield
    @server.write("go", "")
    client.join
  end

  def stack(*words)
    text, status = Open3.capture2e(*Support::Checkout.pando("stack", *words, "-C", @server.folder))
    [text, status.exitstatus]
  end

  def told(answer) = [answer.code, JSON.parse(answer.body)["error"]]
end
