# frozen_string_literal: true

require "test_helper"
require "net/http"
require "pando/fork_safety"
require "pando/http/thread_server"
require "pando/testing/app_server"
require "support/in_child"

# The app under test, served from threads of the test process.
class TestingAppServerTest < Minitest::Test
  include Support::InChild

  AppServer = Pando::Testing::AppServer

  def setup
    @port = free_port
    start("first")
  end

  def teardown
    AppServer.threads.each { |thread| thread.kill.join }

    assert_empty AppServer.listeners, "a server that ends gives up its listener"
  end

  def test_it_answers
    assert_equal "first", get
    assert_equal [@thread], AppServer.threads
  end

  # A client that comes meanwhile waits in the kernel.
  def test_nobody_accepts_while_it_is_paused
    AppServer.pause
    refute_predicate @thread, :alive?
    client = Thread.new { get }
    wait_until { client.stop? }
    AppServer.resume

    assert_equal "first", client.value
  end

  def test_it_pauses_more_than_once
    2.times { AppServer.pause }
    2.times { AppServer.resume }

    assert_equal [1, "first"], [AppServer.threads.size, get]
  end

  # The parent goes on accepting there.
  def test_a_child_without_a_refork_does_not_take_its_place
    outcome = in_child do
      AppServer.run(->(_env) { [200, {}, ["child"]] }, "127.0.0.1", @port)
    rescue SystemCallError => e
      e.class.name
    end

    assert_equal ["Errno::EADDRINUSE", "first"], [outcome, get]
  end

  def test_a_child_goes_on_with_what_was_paused
    AppServer.pause
    answer = in_child do
      AppServer.resume
      get
    end
    AppServer.resume

    assert_equal %w[first first], [answer, get]
  end

  # The parent serves there.
  def test_a_child_leaves_alone_what_it_has_inherited
    threads = in_child do
      AppServer.pause
      AppServer.resume
      AppServer.threads.size
    end

    assert_equal [0, "first"], [threads, get]
  end

  # Capybara starts it again if it finds the thread that it knows dead.
  def test_another_start_at_the_same_place_takes_over
    AppServer.pause
    AppServer.resume
    start("second")
    wait_until { AppServer.threads == [@thread] }

    assert_equal "second", get
  end

  # As Capybara does it.
  def start(text)
    app = ->(_env) { [200, { "content-type" => "text/plain" }, [text]] }
    @thread = Thread.new { AppServer.run(app, "127.0.0.1", @port) }
    wait_until { AppServer.threads.any? }
  end

  def get = Net::HTTP.get(URI("http://127.0.0.1:#{@port}/"))
end
