# frozen_string_literal: true

require "test_helper"
require "pando/sys"

# A process that says where it stands, even when it can run no Ruby.
class SysInspectTest < Minitest::Test
  SIGNAL = 50

  def test_the_stack_of_a_process_that_stands_in_c
    reader, writer = IO.pipe
    lines = [__LINE__ + 3, __LINE__ + 4].map { |line| "#{__FILE__}:#{line}" } # it may not sleep yet
    child = fork do
      Pando::Sys.tell_place_on(SIGNAL, writer)
      writer.write(".")
      sleep
    end
    reader.read(1)
    Process.kill(SIGNAL, child)
    stack = reader.gets("\n\n").lines.map(&:chomp)

    refute_empty(stack & lines)
  ensure
    Process.kill(:KILL, child)
    Process.wait(child)
    [reader, writer].each(&:close)
  end

  def test_what_is_not_open_is_refused
    assert_raises(Errno::EBADF) { Pando::Sys.open_file_shared?(Process.pid, 9999, Process.pid, 9999) }
    assert_raises(SystemCallError) { Pando::Sys.tell_place_on(9, $stdout) }
  end
end
