# frozen_string_literal: true

require "test_helper"
require_relative "support/fake_worker"
require "pando/http"
require "socket"

class RehearsalTest < Minitest::Test
  include HTTPSupport::Events

  Rehearsal = Pando::HTTP::Rehearsal

  def listener = @listener ||= TCPServer.new("127.0.0.1", 0)
  def teardown = @listener&.close

  def rehearse = Rehearsal.run(HTTPSupport.settings, listener)

  # What nobody would notice: nothing depends on it.
  def test_the_request_is_answered
    ours, theirs = UNIXSocket.pair
    ours.write(Rehearsal::REQUEST)
    Rehearsal.send(:serve, HTTPSupport.settings, listener, theirs)
    theirs.close
    head, body = ours.read.split("\r\n\r\n")

    assert_equal(["HTTP/1.1 200 OK", "well"], [head.lines.first.chomp, body])
  ensure
    [ours, theirs].compact.each(&:close)
  end

  def test_it_leaves_nothing_behind
    trap("URG", "DEFAULT") # other tests have left a handler
    rehearse
    GC.disable # which would close what other tests have left
    before = [Dir.children("/proc/self/fd"), trap("URG", "DEFAULT")]
    seen = events_of { rehearse }

    assert_equal(before, [Dir.children("/proc/self/fd"), trap("URG", "DEFAULT")])
    assert_empty(seen)
  ensure
    GC.enable
  end

  def test_what_goes_wrong_is_passed_over
    assert_nil(Rehearsal.run(nil, listener))
    assert_nil(Rehearsal.run(HTTPSupport.settings, nil))
  end
end
