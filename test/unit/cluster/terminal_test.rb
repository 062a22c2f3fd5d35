# frozen_string_literal: true

require "test_helper"
require "pty"
require "pando/cluster/signals"

# Whether the terminal is still there.
class ClusterTerminalTest < Minitest::Test
  # In a session of its own.
  def in_session
    reader, writer = IO.pipe
    pid = fork do
      Process.setsid
      trap("HUP", "IGNORE")
      writer.puts(yield.inspect)
    ensure
      exit!(0)
    end
    writer.close
    reader.read.chomp
  ensure
    Process.wait(pid) if pid
  end

  # A session leader's first terminal becomes the one that controls it.
  def terminal
    master, slave = PTY.open
    File.open(slave.path, &:itself)
    slave.close
    master
  end

  def test_a_terminal_that_hangs_up_is_lost_once
    told = in_session do
      master = terminal
      watched = Pando::Cluster::Terminal.new
      before = watched.lost?
      master.close
      [before, watched.lost?, watched.lost?]
    end

    assert_equal("[false, true, false]", told)
  end

  def test_without_a_terminal_none_is_lost
    assert_equal("[false, false]", in_session { Array.new(2) { Pando::Cluster::Terminal.new.lost? } })
  end
end
