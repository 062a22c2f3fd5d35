# frozen_string_literal: true

require "test_helper"
require "pando/sys"
require "support/in_child"

# What a row of the scoreboard tells of what its process has become.
class SysSampleTest < Minitest::Test
  include Support::InChild

  PAGES = 2048

  def setup
    @board = Pando::Sys::Scoreboard.create(2)
    @row = @board.row(1).claim(1, 0, 0)
  end

  # @return [Array<Integer>] behind which jobs a sample was due
  def do_jobs(count, subject = "/")
    (1..count).select do
      @row.start_job("GET", subject, nil, nil)
      @row.finish_job.tap { |due| @row.take_sample(0, 0, 0, 0) if due }
    end
  end

  def kinds(*subjects)
    @row.restart
    subjects.each { |subject| do_jobs(1, subject) }
    @row.sample.kinds
  end

  def test_of_a_new_row_there_is_none
    assert_nil @row.sample
  end

  def test_what_it_says
    before = Pando::Sys.now
    do_jobs(3)
    @row.take_sample(5_000_000_000, 7, 2, 1500)
    sample = @row.sample

    assert_equal [3, 5_000_000_000, 7, 2, 1.5],
                 [sample.jobs, sample.code_bytes, sample.minor_gcs, sample.major_gcs, sample.gc_time]
    assert_includes before..Pando::Sys.now, sample.at
    assert_operator sample.cpu, :>, 0
    assert_operator sample.faults, :>, 0
  end

  # The few, for a machine that is busy may let a quarter of a second pass between any two.
  def test_while_it_is_young_at_each_power_of_two
    due = do_jobs(256)

    assert_equal [1, 2, 4, 8, 16, 32, 64, 128, 256], due & [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert_operator due.size, :<, 256
  end

  def test_lately_is_a_spell_of_32_jobs_or_more
    do_jobs(16)
    assert_equal [0, nil, 0], lately
    do_jobs(16)
    assert_equal 32, lately.first
    assert_operator @row.sample.lately_cpu, :>, 0
  end

  # A child's first write to a page that it shares is a fault.
  def test_lately_is_not_before
    shared = "x" * (PAGES * 4096)
    during, afterwards = in_child do
      @row.claim(1, 0, 0)
      PAGES.times { |number| shared.setbyte(number * 4096, 0) }
      do_jobs(32)
      [lately, do_jobs(32) && lately]
    end

    assert_equal [32, 32], [during.first, afterwards.first]
    assert_operator during[1], :>=, PAGES.fdiv(32)
    assert_operator afterwards[1], :<, during[1]
  end

  def test_kinds_are_counted_without_their_numbers
    assert_equal 1, kinds("/users/17", "/users/18", "/users/3f2a-c")
    assert_equal 2, kinds("/users/17", "/users/17/edit", "/users/18/edit")
    assert_includes 30..50, kinds(*("a".."z").map { |name| "/#{name}" }, *("a".."n").map { |name| "/#{name}/x" })
    assert_includes 200..266, kinds(*("aaa".."zzz").first(4000).map { |name| "/#{name}" })
  end

  def test_the_verb_is_part_of_the_kind
    do_jobs(1)
    @row.start_job("POST", "/", nil, nil)

    assert_equal 2, @row.sample.kinds
  end

  def test_begun_anew
    do_jobs(64)
    @row.restart

    assert_nil @row.sample
    do_jobs(1)
    assert_equal [1, 1, 0], [@row.sample.jobs, @row.sample.kinds, @row.sample.lately_jobs]
  end

  def test_a_number_that_does_not_fit
    @row.take_sample(0, 1 << 40, 0, 0)

    assert_equal (1 << 32) - 1, @row.sample.minor_gcs
  end

  private

  def lately
    sample = @row.sample
    [sample.lately_jobs, sample.faults_per_job, sample.lately_cpu]
  end
end
