# frozen_string_literal: true

require "test_helper"
require "pando/sys"

# What a row knows of jobs that a process does side by side, and counts now and then.
class SysSideBySideTest < Minitest::Test
  def setup
    @board = Pando::Sys::Scoreboard.create(1)
    @row = @board.row(0).claim(1, 0, 0)
    @row.count_jobs(0, 0)
  end

  def test_they_are_counted_together_with_those_that_failed
    @row.count_jobs(5, 2)
    @row.count_jobs(3, 0)

    assert_equal [8, 2], [@row.requests, @row.failures]
  end

  # Ten jobs whose mean is known are no ten measurements.
  def test_they_are_measured_once_by_their_share_of_the_cpu_time
    spend(0.05)
    @row.count_jobs(10, 0)
    cpu, wall = @row.first_jobs

    assert_operator microseconds(cpu.bytes.first), :>=, 4000
    assert_equal "\0" * 9, cpu[1..]
    assert_equal "\0" * 10, wall
    assert_equal [cpu[0], "\0"], @row.jobs_since(0)
  end

  def test_whoever_looks_twice_measures_twice
    2.times do
      spend(0.005)
      @row.count_jobs(3, 0)
    end
    measured = @row.first_jobs.first.bytes

    assert_equal([0, 3], measured.each_index.reject { |index| measured[index].zero? })
    assert_equal 2, @row.jobs_since(0).first.bytesize
  end

  def test_more_than_are_measured_one_by_one_do_no_harm
    @row.count_jobs(1_000, 0)

    assert_equal 1_000, @row.requests
    assert_equal 256, @row.first_jobs.first.bytesize
    assert_equal 1, @row.jobs_since(0).first.bytesize
  end

  def test_a_row_rests_without_a_job_being_done
    @row.start_job("jobs", "2 running", 5, 6)
    @row.rest

    assert_equal [nil, nil, nil, 0], [@row.busy_since, @row.soft_deadline, @row.hard_deadline, @row.requests]
  end

  def test_what_runs_and_what_waits
    blank = [@row.running, @row.lag, @row.latency]
    @row.set_load(3, 0, 0)
    none = [@row.running, @row.lag, @row.latency]
    @row.set_load(0, nil, nil)

    assert_equal [[0, nil, nil], [3, 0, 0], [0, nil, nil]], [blank, none, [@row.running, @row.lag, @row.latency]]
    @row.set_load(1, 4_294_967_295, 1234)

    assert_equal [4_294_967_294, 1234], [@row.lag, @row.latency]
  end

  private

  def spend(seconds)
    limit = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + seconds
    nil while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < limit
  end

  # See ext/pando/sys/measure.h.
  def microseconds(code)
    octave, step = (code - 1).divmod(8)
    (2.0**octave) * (1 + (step / 8.0))
  end
end
