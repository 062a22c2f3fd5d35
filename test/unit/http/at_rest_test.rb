# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/http"
require_relative "../cluster/support/clock"
require_relative "support/fake_worker"
require_relative "support/served_work"

# When an HTTP worker can be forked, and what it tells the monitor of the connections that the app has taken over.
class HTTPAtRestTest < Minitest::Test
  include ClusterSupport::Clock

  AtRest = Pando::HTTP::AtRest
  Libraries = Pando::ForkSafety::Libraries

  # Includes it as Work does.
  class DirectHandler
    include Pando::HTTP::AtRest

    public :count_connections
  end

  def setup
    @work = DirectHandler.new
    @goodbyes = 0
  end

  def say_goodbye(answer)
    @goodbyes += 1
    answer
  end

  def with(connections:, over: false, &block)
    Pando::ForkSafety.stub(:connections, connections) do
      Libraries.stub(:say_goodbye, -> { say_goodbye(over) }, &block)
    end
  end

  def rest?(queued) = Pando::ForkSafety::QueuedWork.stub(:pending?, queued) { @work.rest? }

  def test_at_once_when_nothing_is_queued
    assert rest?(false)
  end

  def test_a_moment_without_background_jobs_is_waited_for_but_not_for_long
    refute rest?(true)
    elapse(AtRest::LONGEST - 0.1)
    refute rest?(true)
    elapse(0.1)

    assert rest?(true)
    assert_operator @work.patience, :>, AtRest::LONGEST, "else it would be refused"
  end

  def test_each_order_has_a_time_of_its_own
    rest?(true)
    elapse(60)
    @work.go_on

    refute rest?(true)
  end

  def test_without_connections_nobody_is_told
    with(connections: 0) { assert rest?(false) }

    assert_equal 0, @goodbyes
  end

  def test_clients_are_told_and_waited_for_but_not_for_ever
    with(connections: 2) do
      refute rest?(false)
      elapse(AtRest::GOODBYE - 0.1)
      refute rest?(false)
      elapse(0.1)

      assert rest?(false)
    end
    assert_equal 3, @goodbyes
  end

  def test_as_soon_as_they_have_gone_it_rests
    with(connections: 2) { refute rest?(false) }
    with(connections: 2, over: true) { assert rest?(false) }
  end

  def test_while_a_job_runs_clients_are_told_too
    with(connections: 2, over: true) { refute rest?(true) }

    assert_equal 1, @goodbyes
  end

  def test_the_next_time_clients_have_as_long
    with(connections: 1) do
      refute rest?(false)
      elapse(60)
      @work.go_on

      refute rest?(false)
    end
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
