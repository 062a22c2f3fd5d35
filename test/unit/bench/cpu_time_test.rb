# frozen_string_literal: true

require_relative "bench_helper"
require "io/wait"
require "support/cpu_time"

class CPUTimeTest < Minitest::Test
  BURNT = 0.2 # seconds
  TICK = Bench::CPUTime::TICK

  def test_all_threads_and_the_children_that_have_ended_count
    with_child do |pid, before|
      # One share by a thread of its own, one by a child that it has waited for.
      assert_operator Bench::CPUTime.of([pid]) - before, :>=, (2 * BURNT) - (2 * TICK)
    end
  end

  def test_a_process_that_is_gone_counts_nothing
    pid = fork { exit!(0) }
    Process.wait(pid)

    assert_in_delta 0.0, Bench::CPUTime.of([pid])
  end

  def test_of_several_it_is_the_sum
    assert_operator Bench::CPUTime.of([Process.pid, Process.ppid]), :>=, Bench::CPUTime.of([Process.ppid])
  end

  private

  # Yields when the child has burnt its time.
  def with_child
    reader, writer = IO.pipe
    go, started = IO.pipe
    pid = fork { child(go, writer) }
    before = Bench::CPUTime.of([pid])
    started.puts
    assert reader.wait_readable(60)
    yield pid, before
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
    [reader, writer, go, started].each(&:close)
  end

  def child(go, writer)
    go.gets
    Thread.new { burn(Process::CLOCK_THREAD_CPUTIME_ID) }.join
    Process.wait(fork { burn(Process::CLOCK_PROCESS_CPUTIME_ID) || exit!(0) })
    writer.puts
    sleep
  ensure
    exit!(1)
  end

  def burn(clock)
    nil until Process.clock_gettime(clock) >= BURNT
  end
end
