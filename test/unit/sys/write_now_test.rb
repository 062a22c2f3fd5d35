# frozen_string_literal: true

require "test_helper"
require "open3"
require "pando/sys"
require "support/c_program"
require "tempfile"

# Nobody waits for a reader that stalls. What becomes of the lines: LineWriterTest.
class SysWriteNowTest < Minitest::Test
  def test_each_way_for_a_pipe
    output, status = Open3.capture2e(Support::CProgram.path("write_now", %w[sys/write_now.c]))

    assert_predicate status, :success?, output
    assert_equal "all hold\n", output
  end

  def test_a_portion_is_taken_and_then_nothing
    reader, writer = IO.pipe
    portion = "x" * 10_000
    assert_equal 4096, Pando::Sys.write_now(writer, portion)
    nil while Pando::Sys.write_now(writer, portion)

    assert_nil Pando::Sys.write_now(writer, "line\n")
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_file_takes_all
    Tempfile.create { |file| assert_equal 10_000, Pando::Sys.write_now(file, "x" * 10_000) }
  end

  def test_a_reader_that_is_gone
    reader, writer = IO.pipe
    reader.close

    assert_raises(Errno::EPIPE) { Pando::Sys.write_now(writer, "line\n") }
  ensure
    writer.close
  end
end
