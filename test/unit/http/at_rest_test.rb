# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/http"
require_relative "support/fake_worker"
require_relative "support/served_work"

# When an HTTP worker can be forked, and what it tells the monitor of the connections that the app has taken over.
class HTTPAtRestTest < Minitest::Test
  Libraries = Pando::ForkSafety::Libraries

  # Includes it as Work does.
  class Work
    include Pando::HTTP::AtRest

    public :count_connections
  end

  def setup
    @work = Work.new
    @goodbyes = 0
  end

  def say_goodbye(answer)
    @goodbyes += 1
    answer
  end

  def with(connections:, over: false, now: 100.0, &block)
    Pando::ForkSafety.stub(:connections, connections) do
      Libraries.stub(:say_goodbye, -> { say_goodbye(over) }) { Pando::Sys.stub(:now, now, &block) }
    end
  end

  def test_without_connections_nobody_is_told
    with(connections: 0) { assert_predicate @work, :rest? }

    assert_equal 0, @goodbyes
  end

  def test_clients_are_told_and_waited_for_but_not_for_ever
    with(connections: 2, now: 100.0) { refute_predicate @work, :rest? }
    with(connections: 2, now: 100.9) { refute_predicate @work, :rest? }
    with(connections: 2, now: 101.0) { assert_predicate @work, :rest? }

    assert_equal 3, @goodbyes
    assert_operator @work.patience, :>, Pando::HTTP::AtRest::GOODBYE
  end

  def test_as_soon_as_they_have_gone_it_rests
    with(connections: 2) { refute_predicate @work, :rest? }
    with(connections: 2, over: true) { assert_predicate @work, :rest? }
  end

  def test_the_next_time_clients_have_as_long
    with(connections: 1, now: 100.0) { refute_predicate @work, :rest? }
    @work.go_on
    with(connections: 1, now: 200.0) { refute_predicate @work, :rest? }
  end

  def test_the_monitor_is_told_how_many_connections_there_are
    worker = HTTPSupport::FakeWorker.new
    with(connections: 3) { @work.count_connections(worker) }

    assert_equal 3, worker.connections
  end

  def test_a_hijacked_connection_counts_until_it_is_closed
    sockets = Queue.new
    served = HTTPSupport::ServedWork.new(->(env) { [200, {}, [sockets << env["rack.hijack"].call]] }).start
    client = served.connect
    client.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    socket = sockets.pop
    before = Pando::ForkSafety.connections
    socket.close

    assert_equal 1, before - Pando::ForkSafety.connections
  ensure
    client&.close
    served&.stop
  end
end
