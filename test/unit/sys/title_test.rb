# frozen_string_literal: true

require "test_helper"
require "pando/sys"

# The end of a process's title, rewritten in place.
class SysTitleTest < Minitest::Test
  # In a process of its own: a title cannot be taken back.
  # @return [String] what the block returns there
  def in_process
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      writer.write(yield)
      exit!(0)
    end
    writer.close
    reader.read.tap { Process.wait(pid) }
  end

  def title = File.read("/proc/self/cmdline").delete("\0").strip

  def test_the_last_word_changes_and_nothing_else
    seen = in_process do
      Process.setproctitle("pando worker 7 gen 12 idle")
      found = Pando::Sys.locate_title("pando worker 7 gen 12 idle")
      [found, title, Pando::Sys.end_title("busy"), title, Pando::Sys.end_title("idle"), title].join("|")
    end
    worker = "pando worker 7 gen 12"

    assert_equal "true|#{worker} idle|true|#{worker} busy|true|#{worker} idle", seen
  end

  def test_a_title_that_somebody_else_has_set_is_left_alone
    seen = in_process do
      Process.setproctitle("pando worker 7 gen 12 idle")
      Pando::Sys.locate_title("pando worker 7 gen 12 idle")
      Process.setproctitle("a title of the application's own")
      [Pando::Sys.end_title("busy"), title].join("|")
    end

    assert_equal "false|a title of the application's own", seen
  end

  def test_a_title_that_is_not_there
    seen = in_process do
      [Pando::Sys.locate_title("pando worker 7 gen 12 idle"), Pando::Sys.end_title("busy"),
       Pando::Sys.locate_title("short")].join("|")
    end

    assert_equal "false|false|false", seen
  end

  def test_a_word_that_is_longer_than_the_title_is_not_written
    seen = in_process do
      Process.setproctitle("pando worker 7 idle")
      Pando::Sys.locate_title("pando worker 7 idle")
      [Pando::Sys.end_title("x" * 19), title].join("|")
    end

    assert_equal "false|pando worker 7 idle", seen
  end

  def test_each_fork_counts
    before = Pando::Sys.forks

    assert_equal((before + 1).to_s, in_process { Pando::Sys.forks })
    assert_equal((before + 2).to_s, in_process { in_process { Pando::Sys.forks } })
    assert_equal before, Pando::Sys.forks
  end
end
