# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: until the first refork one worker is given all requests that it can take, and nobody waits for it.
class TraineeTest < Minitest::Test
  include Support::Servers

  # A request to /held ends when somebody writes into the FIFO of that name; the answer is who served it.
  APP = <<~RUBY
    run lambda { |env|
      File.read(File.join(__dir__, env["PATH_INFO"])) if env["PATH_INFO"].start_with?("/held")
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  def test_behind_the_reactor
    train(reactor: true)
  end

  def test_in_direct_mode
    train(reactor: false)
  end

  private

  def train(reactor:)
    @server = serve(app: APP, config: "workers 3\nreactor #{reactor}\nrefork after: [400, false]")
    first = chosen
    assert_serves(first)
    assert_spread_while_busy(first)
    assert_serves(first)
    second = chosen { Process.kill("KILL", first) }
    assert_serves(second)
    assert_forked_from(second)
  end

  def chosen(&trigger)
    event = trigger ? @server.wait_for("trainee.chosen", &trigger) : @server.wait_past("trainee.chosen")
    event["pid"]
  end

  # Most: on a busy machine it may not have fallen asleep before the next request comes, and then another one is called.
  def assert_serves(trainee)
    wait_until_told(trainee)
    pids = Array.new(30) { ask_when_idle(trainee) }

    assert_operator pids.count(trainee), :>=, 20, "#{trainee} served few of #{pids.tally}"
  end

  # It, and in direct mode the others, are told over their links.
  def wait_until_told(trainee)
    wait_until(timeout: 30, message: "five requests in a row for the trainee") do
      Array.new(5) { ask_when_idle(trainee) }.uniq == [trainee]
    end
  end

  def ask_when_idle(trainee)
    wait_until(timeout: 30, message: "an idle trainee") { File.read("/proc/#{trainee}/cmdline").include?("idle") }
    @server.get("/").body.to_i
  end

  # It ends first, and so it has been idle for longer than the others when the next request comes.
  def assert_spread_while_busy(trainee)
    held = Array.new(3) { |number| hold("held#{number}", number + 1) }
    pids = held.map { |name, request| release(name) && request.value.body.to_i }

    assert_equal trainee, pids.first
    assert_equal 3, pids.uniq.size
  end

  def hold(name, busy)
    File.mkfifo(File.join(@server.folder, name))
    request = Thread.new { @server.get("/#{name}") }
    @server.wait_until_busy(busy)
    [name, request]
  end

  def release(name)
    File.write(File.join(@server.folder, name), "on")
    File.unlink(File.join(@server.folder, name))
  end

  def assert_forked_from(trainee)
    @server.get("/") until @server.events("refork.started").any?
    started = @server.wait_past("refork.started")

    assert_equal trainee, started["source"]
    assert_match(/\Athe warmest of 3: \d+ requests of \d kinds?, .*page faults a request lately\z/, started["choice"])
    @server.wait_past("refork.finished")
  end
end
