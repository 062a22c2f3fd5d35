# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/fork_safety/file_time"

# Times of files on both sides of a tick.
class FileTimeTest < Minitest::Test
  FileTime = Pando::ForkSafety::FileTime
  LONGEST = 8_000_000 # nanoseconds: two ticks of most kernels

  # A file that is made at the end of a tick may have a later time than the clock shows right after the tick.
  def test_a_tick_divides_files_made_before_it_from_those_made_after_it
    100.times do
      pass(rand(LONGEST))
      Dir.mktmpdir do |folder|
        before = make(File.join(folder, "before"))
        tick = FileTime.tick

        assert_operator before, :<, tick
        assert_operator make(File.join(folder, "after")), :>=, tick
      end
    end
  end

  private

  # A sleep would end right after a tick.
  def pass(nanoseconds)
    over = fine_clock + nanoseconds
    nil while fine_clock < over
  end

  def fine_clock = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  def make(path)
    File.write(path, "")
    [FileTime.made(path), FileTime.written(path)].max
  end
end
