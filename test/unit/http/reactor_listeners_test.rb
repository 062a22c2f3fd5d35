# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/c_program"
require_relative "support/reactor_case"

# Listeners that the monitor opens and closes while the reactor serves.
class HTTPReactorListenersTest < Minitest::Test
  include HTTPSupport::ReactorCase

  OPEN = 5
  CLOSE = 6

  def leave(number = 0) = @stage.ok("record", CLOSE, number, 0)
  # The stage hands over a copy of its one listener.
  def listen(number, flags) = @stage.ok("listen", number, flags)

  def refused?
    TCPSocket.new("127.0.0.1", @listener.addr[1]).close
    false
  rescue Errno::ECONNREFUSED
    true
  end

  def test_whoever_has_connected_is_answered_and_then_let_go
    stage
    clients = Array.new(3) { request(HTTPSupport::ReactorCase::GET) }
    leave
    wait_until { refused? }
    3.times { @stage.answer(@stage.take(0)) }

    clients.each { |client| assert_match(/\r\n\r\nhello\z/, read_all(client)) }
  end

  def test_a_held_one_is_left_as_it_is
    stage(held: 1)
    serves(0)
    leave
    counts("accepted" => 1)
    connect

    assert(@listener.wait_readable(90), "the connection waits for the holder of the listener")
    refute_predicate(self, :refused?)
  end

  def test_another_one_is_opened_and_closed_again
    stage(held: 1)
    leave
    listen(700, 2)
    serves(0)
    taken = [request(HTTPSupport::ReactorCase::GET), @stage.take(0)].last
    assert_equal("700", @stage.tell("listener", taken.lane))
    @stage.answer(taken)
    listen(3, 3)
    listen(3, 2) # no longer behind a proxy
    leave(700)
    serves(1)
  end

  def test_a_request_that_arrives_as_idle_connections_end_may_close_others
    program = Support::CProgram.path("idle_end", HTTPSupport::ReactorStage::SOURCES)
    output, status = Open3.capture2e(program)

    assert_predicate status, :success?, output
    assert_includes output, "all hold"
  end

  def test_numbers_out_of_bounds_end_it
    stage
    @stage.ok("record", CLOSE, 1024, 0)

    assert_equal(3, @stage.wait)
  end

  private

  def read_all(client)
    assert(client.wait_readable(90))
    client.read
  end
end
