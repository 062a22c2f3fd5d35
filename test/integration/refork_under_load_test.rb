# frozen_string_literal: true

require "test_helper"
require "support/load"
require "support/servers"

# Promise: a refork under load loses no request.
class ReforkUnderLoadTest < Minitest::Test
  include Support::Servers

  REQUESTS = 10_000
  REFORKS = 20

  def teardown
    @load&.stop
    super
  end

  def test_no_request_is_lost_on_a_unix_socket
    start
    refork_under_load(@server.method(:connect))
  end

  def test_no_request_is_lost_on_tcp
    start("-l", "127.0.0.1:0")
    port = @server.events("monitor.listening").first["listen"][/127\.0\.0\.1:(\d+)/, 1].to_i
    refork_under_load(-> { TCPSocket.new("127.0.0.1", port) })
  end

  private

  def start(*arguments)
    @server = serve(app: Support::Load::APP, config: "workers 4\nrefork :manual", arguments: arguments)
  end

  def refork_under_load(connect)
    @load = Support::Load.start(connect, clients: 6)
    REFORKS.times do
      @server.refork
      @load.wait_for_more(REQUESTS / REFORKS)
    end
    @load.stop

    assert_empty(@load.failures.first(5))
    assert_operator(@load.outcomes.size, :>=, REQUESTS)
    assert_equal(REFORKS, @server.events("refork.finished").size)
    assert_served_by_every_generation
    assert_predicate(@server.stop, :success?, @server.output)
  end

  def assert_served_by_every_generation
    pids = @load.outcomes.map(&:pid).uniq
    generations = @server.events("worker.ready").group_by { |event| event["generation"] }
    assert_equal([*0..REFORKS], generations.keys)
    generations.each do |number, ready|
      assert(ready.any? { |event| pids.include?(event["pid"]) }, "generation #{number} served nobody")
    end
  end
end
