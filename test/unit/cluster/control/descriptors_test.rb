# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/cluster/control/session"
require "pando/sys"

# Descriptors that come along with a command.
class ControlDescriptorsTest < Minitest::Test
  Session = Pando::Cluster::Control::Session

  def setup
    ours, @client = UNIXSocket.pair
    @session = Session.new(ours, Pando::Sys::Poller.new)
    @reader, @writer = IO.pipe
  end

  def teardown
    @session.close
    [@client, @reader, @writer].each(&:close)
    super
  end

  def test_they_are_the_commands_until_it_is_answered
    send_with("pages\n", 2)

    assert_equal "pages\n", @session.command
    assert_equal 2, @session.descriptors.size
    @session.finish("ok")

    assert_empty @session.descriptors
    assert_all_closed
  end

  def test_who_sends_more_than_anybody_needs_is_cut_off
    2.times { send_with("p", 2) && @session.command }

    assert_predicate @session, :closed?
    assert_all_closed
  end

  def test_more_than_a_packet_may_have_cuts_off
    send_with("pages\n", 40)

    assert_nil @session.command
    assert_predicate @session, :closed?
    assert_all_closed
  end

  def test_what_comes_after_the_command_is_not_kept
    send_with("pages\n", 1)
    @session.command
    send_with("pages\n", 2)

    assert_nil @session.command
    refute_predicate @session, :closed?
    assert_empty @session.descriptors
    assert_all_closed
  end

  private

  def send_with(text, count)
    @client.sendmsg(text, 0, nil, Socket::AncillaryData.unix_rights(*([@writer] * count)))
  end

  # The last one but ours, so its reader is told of the end.
  def assert_all_closed
    @writer.close

    assert_equal "", @reader.read
  end
end
