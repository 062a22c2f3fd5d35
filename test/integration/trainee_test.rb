# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: with `jit :trainee`, until the first refork one worker is given all requests that it can take, and
# nobody waits for it.
class TraineeTest < Minitest::Test
  include Support::Servers

  # A request to /held ends when the test writes into the FIFO of that name; a worker that is named in one must not be
  # forked any more. The answer names the worker that served it.
  APP = <<~RUBY
    run lambda { |env|
      Pando.no_longer_fork_safe!("for the test") if env["QUERY_STRING"] == Process.pid.to_s
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
    @server = serve(app: APP, config: "workers 3\nreactor #{reactor}\njit :trainee\nrefork after: [250, false]")
    first = chosen
    assert_serves(first)
    assert_spread_while_busy(first)
    assert_serves(first)
    second = chosen { ask_when_idle(first, "/?#{first}") until @server.events("worker.unsafe").any? }
    assert_serves(second)
    assert_forked_from(second)
  end

  def chosen(&trigger)
    event = trigger ? @server.wait_for("trainee.chosen", &trigger) : @server.wait_past("trainee.chosen")
    event["pid"]
  end

  # Most: it may wake for a moment, twice a second, just when a request comes.
  def assert_serves(trainee)
    wait_until_told(trainee)
    pids = Array.new(20) { ask_when_idle(trainee) }

    assert_operator pids.count(trainee), :>=, 14, "#{trainee} served few of #{pids.tally}"
  end

  # It, and in direct mode the others, are told over their links.
  def wait_until_told(trainee)
    wait_until(message: "five requests in a row for the trainee") do
      Array.new(5) { ask_when_idle(trainee) }.uniq == [trainee]
    end
  end

  def ask_when_idle(trainee, path = "/")
    wait_until(message: "an idle trainee") { asleep?(trainee) }
    @server.get(path).body.to_i
  end

  # It says that it is idle just before it falls asleep.
  def asleep?(pid)
    File.read("/proc/#{pid}/cmdline").include?("idle") && File.read("/proc/#{pid}/stat").include?(") S ")
  end

  # It ends first, and so it has been idle for longer than the others when the next request comes. Of three times it
  # may wake for a moment in one.
  def assert_spread_while_busy(trainee)
    pids = Array.new(3) { serve_three_at_once }

    assert_equal([3, 3, 3], pids.map { |each| each.uniq.size })
    assert_operator pids.map(&:first).count(trainee), :>=, 2
  end

  # @return [Array<Integer>] pids of those that served
  def serve_three_at_once
    # All, not only the trainee: a worker that still seems busy with its last request would count for one of these.
    wait_until(message: "idle workers") { @server.workers.all? { |worker| asleep?(worker.pid) } }
    held = Array.new(3) { |number| hold("held#{number}", number + 1) }
    held.map { |name, request| release(name) && request.value.body.to_i }
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
    assert_match(/\Athe warmest of 2: \d+ requests of \d kinds?, .*page faults a request lately\z/, started["choice"])
    @server.wait_past("refork.finished")
  end
end
