# frozen_string_literal: true

require "test_helper"
require "fiddle"
require "pando/sys"

# A process that says where it stands, even when it can run no Ruby.
class SysInspectTest < Minitest::Test
  SIGNAL = 50

  # @yieldparam child [Integer] that stands in C and is to be signalled
  def assert_stack
    reader, writer = IO.pipe
    lines = [__LINE__ + 4, __LINE__ + 5].map { |line| "#{__FILE__}:#{line}" } # it may not sleep yet
    child = fork do
      Thread.new { sleep }
      Pando::Sys.tell_place_on(SIGNAL, writer)
      writer.write(".")
      sleep
    end
    reader.read(1)
    yield child
    assert(reader.wait_readable(90), "it tells nothing")
    refute_empty(reader.gets("\n\n").lines.map(&:chomp) & lines)
  ensure
    Process.kill(:KILL, child)
    Process.wait(child)
    [reader, writer].each(&:close)
  end

  def test_the_stack_of_a_process_that_stands_in_c
    assert_stack { |child| Process.kill(SIGNAL, child) }
  end

  def test_the_kernel_may_choose_any_thread
    tgkill = Fiddle::Function.new(Fiddle::Handle::DEFAULT["tgkill"], [Fiddle::TYPE_INT] * 3, Fiddle::TYPE_INT)
    assert_stack do |child|
      other = Dir.children("/proc/#{child}/task").map(&:to_i).find { |task| task != child }
      tgkill.call(child, other, SIGNAL)
    end
  end

  def test_what_is_not_open_is_refused
    assert_raises(Errno::EBADF) { Pando::Sys.open_file_shared?(Process.pid, 9999, Process.pid, 9999) }
    assert_raises(SystemCallError) { Pando::Sys.tell_place_on(9, $stdout) }
  end
end
