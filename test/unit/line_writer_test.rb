# frozen_string_literal: true

require "test_helper"
require "io/nonblock"
require "pando/line_writer"
require "pty"
require "tempfile"

class LineWriterTest < Minitest::Test
  def setup
    @reader, @pipe = IO.pipe
    @pipe.nonblock = false # as stderr is
    @writer = Pando::LineWriter.new(@pipe)
  end

  def teardown
    [@reader, @pipe].each(&:close)
  end

  def fill
    loop { @pipe.write_nonblock("x" * 4096) }
  rescue IO::WaitWritable
    @pipe.nonblock = false
  end

  # @return [String] all that is in the pipe, but for what has filled it
  def drain(reader = @reader)
    text = +""
    loop { text << reader.read_nonblock(65_536) }
  rescue IO::WaitReadable
    text.delete_prefix("x" * (text.index(/[^x]/) || text.bytesize))
  end

  # @return [Integer] lines lost meanwhile
  def losing
    before = Pando::LineWriter.lost
    yield
    Pando::LineWriter.lost - before
  end

  # Takes all, and remembers each write.
  def sink(&write)
    written = []
    object = Object.new
    object.define_singleton_method(:written) { written }
    object.define_singleton_method(:syswrite) do |line|
      written << line
      write ? write.call(written) : line.bytesize
    end
    object
  end

  def test_what_belongs_together_is_one_write
    whole = sink
    Pando::LineWriter.new(whole).write("one\n  with backtrace\n")

    assert_equal ["one\n  with backtrace\n"], whole.written
  end

  def test_what_a_reader_does_not_take_is_kept_and_nobody_waits
    fill
    lost = losing { %w[one two].each { |line| @writer.write("#{line}\n") } }
    assert_equal 0, lost
    drain
    @writer.flush

    assert_equal "one\ntwo\n", drain
  end

  # Were it waited for, this would never end.
  def test_a_text_of_many_pages_does_not_wait_in_a_pipe_with_room_for_one
    fill
    @reader.readpartial(4096)
    frames = "    #{"f" * 90}\n" * 300
    @writer.write("begin\n#{frames}")
    seen = +""
    (seen << drain) && @writer.flush until seen.bytesize >= frames.bytesize + 6

    assert_equal "begin\n#{frames}", seen
  end

  def test_what_is_beyond_the_bound_is_lost_and_counted_where_it_is_missing
    fill
    line = "#{"k" * 1000}\n"
    kept = Pando::LineWriter::ROOM / line.bytesize
    lost = losing { (kept + 3).times { @writer.write(line) } && @writer.write("short, but too late\n") }
    assert_equal 4, lost
    seen = +""
    (seen << drain) && @writer.flush until seen.include?("lost")
    @writer.write("next\n")
    seen << drain

    assert_equal "#{line * kept}pando: 4 log lines lost\nnext\n", seen
  end

  def test_the_line_about_losses_is_the_owners_and_it_is_told_of_it
    told = []
    writer = Pando::LineWriter.new(@pipe, said: told.method(:push)) { |lines| "LOST #{lines}\n" }
    @reader.close
    writer.write("one\ntwo\n")
    assert_empty told
    @reader, other = IO.pipe
    @pipe.reopen(other)
    other.close
    writer.write("three\n")

    assert_equal "LOST 2\nthree\n", drain
    assert_equal [2], told
  end

  def test_lines_of_several_processes_are_never_torn
    pids = %w[a b c].map do |mark|
      fork do
        writer = Pando::LineWriter.new(@pipe)
        200.times do
          writer.write("#{mark * 2000}\n" * 4)
          writer.flush(60)
        end
        exit!
      end
    end
    @pipe.close
    lines = @reader.each_line(chomp: true).to_a
    pids.each { |pid| Process.wait(pid) }

    assert_equal 3 * 200 * 4, lines.size
    assert_empty(lines.grep_v(/\A(?:a{2000}|b{2000}|c{2000})\z/))
  end

  def test_a_line_that_would_be_torn_is_cut
    @writer.write("#{"ü" * 4000}\nnext\n")

    assert_equal ["#{"ü" * 2045}…\n", "next\n"], drain.force_encoding("UTF-8").lines
  end

  def test_in_a_file_nothing_is_cut_nor_divided
    Tempfile.create do |file|
      writer = Pando::LineWriter.new(file)
      assert_equal Pando::LineWriter::LONGEST, writer.longest_line
      writer.write("#{"x" * 30_000}\n")

      assert_equal 30_001, File.size(file.path)
    end
  end

  def test_a_socket
    ours, theirs = UNIXSocket.pair
    writer = Pando::LineWriter.new(ours)
    lost = losing { 10_000.times { writer.write("#{"s" * 999}\n") } }
    assert_operator lost, :>, 0
    seen = +""
    (seen << drain(theirs)) && writer.flush until seen.include?("lost")

    assert_equal 10_000 - lost, seen.lines.grep(/\As{999}$/).size
  ensure
    [ours, theirs].each(&:close)
  end

  # It does not wait for a terminal that was stopped (^S).
  def test_a_terminal_that_takes_nothing
    master, slave = PTY.open
    writer = Pando::LineWriter.new(slave)
    lost = losing { 1000.times { writer.write("#{"t" * 999}\n") } }

    assert_operator lost, :>, 0
  ensure
    [master, slave].each(&:close)
  end

  def test_no_flag_is_set_that_others_would_share
    @writer.write("line\n")

    refute_predicate @pipe, :nonblock?
  end

  def test_a_pipe_that_somebody_has_made_non_blocking
    fill
    @pipe.nonblock = true
    @writer.write("kept\n")
    drain
    @writer.flush

    assert_equal "kept\n", drain
  end

  def test_a_reader_that_is_gone_is_no_error
    @reader.close

    assert_equal(1, losing { @writer.write("lost\n") })
  end

  def test_a_closed_or_full_log_is_no_error
    @pipe.close

    assert_equal(1, losing { @writer.write("lost\n") })
    File.open("/dev/full", "w") do |full|
      assert_equal(1, losing { Pando::LineWriter.new(full).write("lost\n") })
    end
  end

  def test_a_line_that_was_cut_short_does_not_swallow_the_next
    short = sink { |written| written.size == 1 ? 2 : written.last.bytesize }
    writer = Pando::LineWriter.new(short) { |lines| "#{lines} lost\n" }
    lost = losing { 2.times { |number| writer.write("line #{number}\n") } }

    assert_equal ["line 0\n", "\n1 lost\n", "line 1\n"], short.written
    assert_equal 1, lost
  end

  def test_an_interrupted_write_is_repeated
    interrupted = sink { |written| written.size == 1 ? raise(Errno::EINTR) : written.last.bytesize }
    Pando::LineWriter.new(interrupted).write("line\n")

    assert_equal %W[line\n line\n], interrupted.written
  end

  def test_a_forked_process_leaves_the_kept_lines_to_its_parent
    fill
    @writer.write("kept\n")
    drain
    Process.wait(fork { @writer.write("the child's\n") || exit!(0) })
    assert_equal "the child's\n", drain
    @writer.flush

    assert_equal "kept\n", drain
  end

  def test_a_trap_handler_may_write_in_the_midst_of_a_write
    told = false
    handled = sink do |written|
      Process.kill("USR1", Process.pid) && wait_until { told } if written.size == 1
      written.last.bytesize
    end
    writer = Pando::LineWriter.new(handled)
    before = trap("USR1") { told = writer.write("handler\n") || true }
    writer.write("outer\n")

    assert_equal %W[outer\n handler\n], handled.written
  ensure
    trap("USR1", before || "DEFAULT")
  end

  def test_patience_is_for_whoever_has_nothing_else_to_do
    fill
    @writer.write("last words\n")
    slow = Thread.new { @reader.readpartial(65_536) }
    @writer.flush(60)
    slow.join

    assert_equal "last words\n", drain
  end
end
