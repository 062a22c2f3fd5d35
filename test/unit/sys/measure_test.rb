# frozen_string_literal: true

require "test_helper"
require "pando/sys"
require "pando/cluster/monitor"

# What a row of the scoreboard tells of single jobs.
class SysMeasureTest < Minitest::Test
  Scoreboard = Pando::Sys::Scoreboard
  Curve = Pando::Cluster::Canary::Curve

  def setup
    @board = Scoreboard.create(2)
    @row = @board.row(1).claim(1, 0, 0)
  end

  def do_jobs(count)
    count.times do
      @row.start_job("GET", "/", nil, nil)
      yield if block_given?
      @row.finish_job
    end
  end

  def test_of_a_new_row
    assert_equal [0, 0, ["", ""], [0] * 9], [@row.failures, @row.recents, @row.first_jobs, @row.faults]
  end

  def test_the_first_jobs_are_measured
    do_jobs(300)

    assert_equal([256, 256], @row.first_jobs.map(&:size))
    assert(@row.first_jobs.all? { |codes| codes.bytes.all?(&:positive?) })
    assert_equal 256, @row.recents
    assert(@row.faults.all?(&:positive?))
    assert_equal @row.faults.sort, @row.faults
  end

  def test_later_ones_when_asked_to
    do_jobs(300)
    @row.measure(10)
    do_jobs(20)

    assert_equal 266, @row.recents
    assert_equal([10, 10], @row.jobs_since(256).map(&:size))
    assert_equal([64, 64], @row.jobs_since(0).map(&:size), "no more are kept")
    assert_equal(["", ""], @row.jobs_since(1000))
  end

  # Sleeping takes time, but no CPU time.
  def test_time_and_cpu_time
    do_jobs(1) { IO.select(nil, nil, nil, 0.05) }
    cpu, time = @row.first_jobs.map { |codes| Curve.microseconds(codes.getbyte(0)) }

    assert_operator time, :>=, 50_000 * 0.88 # a code is rounded down by an eighth at the most
    assert_operator cpu, :<, time
  end

  def test_failures
    do_jobs(3) { @row.fail_job if @row.requests == 1 }

    assert_equal [3, 1], [@row.requests, @row.failures]
  end

  def test_a_restart
    do_jobs(5) { @row.fail_job }
    @row.restart

    assert_equal [0, 0, 0, 0, ["", ""]], [@row.requests, @row.failures, @row.job, @row.recents, @row.first_jobs]
    do_jobs(1)
    assert_equal 1, @row.recents
  end

  def test_who_claims_a_seat_begins_anew
    do_jobs(300)
    @row.reset
    @row.claim(1, 0, 0)
    do_jobs(1)

    assert_equal 1, @row.recents
  end
end
