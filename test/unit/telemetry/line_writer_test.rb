# frozen_string_literal: true

require "test_helper"
require "io/nonblock"
require "pando/telemetry/line_writer"

class TelemetryLineWriterTest < Minitest::Test
  def setup
    @reader, @pipe = IO.pipe
    @writer = Pando::Telemetry::LineWriter.new(@pipe, patience: 0.01)
  end

  def teardown
    [@reader, @pipe].each(&:close)
  end

  def fill
    loop { @pipe.write_nonblock("x" * 65_536) }
  rescue IO::WaitWritable
    @pipe.nonblock = false
  end

  def drain
    loop { @reader.read_nonblock(65_536) }
  rescue IO::WaitReadable
    nil
  end

  def test_a_line_is_one_write
    writes = []
    sink = Object.new
    sink.define_singleton_method(:syswrite) { |line| writes.push(line).last.bytesize }
    Pando::Telemetry::LineWriter.new(sink).write("one\n  with backtrace\n")

    assert_equal ["one\n  with backtrace\n"], writes
  end

  def test_a_reader_that_stalls_costs_lines_and_is_told_how_many
    fill
    3.times { @writer.write("lost\n") }

    assert_equal 3, @writer.lost
    drain
    @writer.write("next\n")
    @writer.write("last\n")
    @pipe.close

    assert_equal "pando: 3 log lines lost\nnext\nlast\n", @reader.read
  end

  def test_a_full_non_blocking_pipe_is_no_error
    fill
    @pipe.nonblock = true
    @writer.write("lost\n")

    assert_equal 1, @writer.lost
  end

  def test_a_reader_that_is_gone_is_no_error
    @reader.close
    @writer.write("lost\n")

    assert_equal 1, @writer.lost
  end

  def test_a_closed_or_full_log_is_no_error
    @pipe.close
    @writer.write("lost\n")

    assert_equal 1, @writer.lost
    File.open("/dev/full", "w") do |full|
      writer = Pando::Telemetry::LineWriter.new(full)
      writer.write("lost\n")

      assert_equal 1, writer.lost
    end
  end

  def test_a_line_that_was_cut_short_does_not_swallow_the_next
    written = []
    sink = Object.new
    sink.define_singleton_method(:syswrite) { |line| written.push(line).size == 1 ? 2 : line.bytesize }
    writer = Pando::Telemetry::LineWriter.new(sink)
    3.times { |number| writer.write("line #{number}\n") }

    assert_equal ["line 0\n", "\nline 1\n", "line 2\n"], written
  end

  def test_an_interrupted_write_is_repeated
    written = []
    sink = Object.new
    sink.define_singleton_method(:syswrite) do |line|
      written << line
      raise Errno::EINTR if written.size == 1

      line.bytesize
    end
    Pando::Telemetry::LineWriter.new(sink).write("line\n")

    assert_equal %W[line\n line\n], written
  end
end
