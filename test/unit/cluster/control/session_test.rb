# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/cluster/monitor"
require "pando/sys"
require "support/no_descriptors"
require_relative "../support/clock"

# One client of the control socket, good or bad.
class ControlSessionTest < Minitest::Test
  include ClusterSupport::Clock
  include Support::NoDescriptors

  Session = Pando::Cluster::Control::Session
  LIMIT = Pando::Cluster::Control::Line::LIMIT

  def setup
    ours, @client = UNIXSocket.pair
    @session = Session.new(ours, Pando::Sys::Poller.new)
  end

  def teardown
    @session.close
    @client.close
    super
  end

  def test_a_command_may_come_in_pieces
    @client.write("sta")

    assert_nil(@session.command)
    @client.write("tus\nmore")
    assert_equal("status\n", @session.command)
  end

  def test_after_its_command_a_client_is_not_listened_to
    @client.write("status\n")
    @session.command
    @client.write("stop\n" * 100)

    assert_nil(@session.command)
    refute_predicate(@session, :closed?)
  end

  # The command would not be what the client has meant.
  def test_a_command_whose_descriptors_have_no_room_is_refused
    @client.sendmsg("pages jobs=0 seconds=5\n", 0, nil, Socket::AncillaryData.unix_rights($stdin, $stdout))
    command = without_free_descriptors { @session.command }

    assert_nil(command)
    assert_match(/\Afailed reason=Too%20many%20open%20files.*ulimit/, @client.read)
    assert_predicate(@session, :closed?)
  end

  def test_who_hangs_up_is_forgotten
    @client.close_write

    assert_nil(@session.command)
    assert_predicate(@session, :closed?)
  end

  def test_a_line_without_end_is_refused
    @client.write("a" * LIMIT)

    assert_nil(@session.command)
    assert_match(/\Afailed reason=/, @client.read)
    assert_predicate(@session, :closed?)
  end

  def test_the_last_word_ends_the_connection
    @session.finish("ok", text: "done")

    assert_equal("ok text=done\n", @client.read)
  end

  Task = Struct.new(:obstacle)

  def test_what_its_task_waits_for_is_told_once_and_again_when_it_changes
    @session.task = Task.new(["generation 7 is watched", 29.2])
    2.times { @session.tell_obstacle }
    @session.task.obstacle = ["generation 8 is booting", nil]
    @session.tell_obstacle
    @session.task.obstacle = nil
    @session.tell_obstacle
    @session.finish("ok")

    assert_equal(["waiting reason=generation%207%20is%20watched seconds=30\n",
                  "waiting reason=generation%208%20is%20booting\n", "ok\n"], @client.each_line.to_a)
  end

  # The upgrade is still to come, and may fail.
  def test_before_an_upgrade_a_client_learns_that_its_outcome_stays_unknown
    @session.task = Struct.new(:lasting?).new(true)
    @session.fail_unfinished
    refute_predicate(@session, :closed?)
    @session.task = Struct.new(:lasting?).new(false)
    @session.fail_unfinished

    _, pairs = Pando::Cluster::Control::Line.decode(@client.read.chomp)
    assert_equal("the monitor is being upgraded: ask `pando status` what becomes of it", pairs["reason"])
  end

  def test_who_does_not_read_is_cut_off_before_the_monitor_has_kept_much
    lines = 0
    until @session.closed?
      @session.say("event", text: "x" * 1000)
      lines += 1
      flunk("it keeps all") if lines > 10_000
    end

    assert_operator(lines * 1000, :<, Session::BACKLOG * 2)
  end

  def test_who_reads_late_gets_all
    500.times { |number| @session.say("event", number: number, text: "x" * 1000) }
    reader = Thread.new { @client.read }
    @session.finish("ok")
    Thread.pass until @session.tap(&:proceed).closed?

    assert_equal([*0...500], reader.value.scan(/number=(\d+)/).flatten.map(&:to_i))
    assert(reader.value.end_with?("ok\n"))
  end

  def test_who_says_nothing_is_not_waited_for
    elapse(Session::TIMEOUT + 1)
    @session.proceed

    assert_predicate(@session, :closed?)
  end
end

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
