# frozen_string_literal: true

require "test_helper"
require_relative "support/fake_worker"
require "pando/http"
require "socket"

class HTTPWarmUpTest < Minitest::Test
  include HTTPSupport::Events

  WarmUp = Pando::HTTP::WarmUp

  def listener = @listener ||= TCPServer.new("127.0.0.1", 0)
  def teardown = @listener&.close

  def warm_up = WarmUp.run(HTTPSupport.settings, listener)

  # A failure would go unnoticed: nothing depends on it.
  def test_the_request_is_answered
    ours, theirs = UNIXSocket.pair
    ours.write(WarmUp::REQUEST)
    WarmUp.send(:serve, HTTPSupport.settings, listener, theirs)
    theirs.close
    head, body = ours.read.split("\r\n\r\n")

    assert_equal(["HTTP/1.1 200 OK", "well"], [head.lines.first.chomp, body])
  ensure
    [ours, theirs].compact.each(&:close)
  end

  def test_it_leaves_nothing_behind
    trap("URG", "DEFAULT") # other tests have left a handler
    warm_up
    GC.disable # which would close what other tests have left
    before = [Dir.children("/proc/self/fd"), trap("URG", "DEFAULT")]
    seen = events_of { warm_up }

    assert_equal(before, [Dir.children("/proc/self/fd"), trap("URG", "DEFAULT")])
    assert_empty(seen)
  ensure
    GC.enable
  end

  def test_what_goes_wrong_is_passed_over
    assert_nil(WarmUp.run(nil, listener))
    assert_nil(WarmUp.run(HTTPSupport.settings, nil))
  end
end
