# frozen_string_literal: true

require "test_helper"
require "tempfile"
require "pando/fork_safety/use"
require "support/descriptor_use"

# What a process is seen to use of the descriptors that it has inherited.
class UseTest < Minitest::Test
  include Support::DescriptorUse

  Use = Pando::ForkSafety::Use

  def test_what_is_only_held_is_not_used
    IO.pipe do |reader, writer|
      assert_empty(used_of(reader, writer) { nil })
    end
  end

  def test_ruby_that_writes_to_a_pipe_with_its_line
    IO.pipe do |reader, writer|
      used = used_of(reader, writer) { writer << "x" }

      assert_equal([[writer.fileno, "#{__FILE__}:#{__LINE__ - 2}"]], used.map { |one| one.values_at(:number, :site) })
    end
  end

  def test_only_the_turn_counts
    IO.pipe do |reader, writer|
      use = use_of([reader, writer])
      writer << "x"
      use.start
      assert_empty(use.used)
    end
  end

  def test_c_code_that_writes_to_a_tcp_connection
    connection do |client, _|
      before, after = Array.new(2) { used_of(client) { c_write(client) }.first }

      assert_equal({ number: client.fileno, site: nil, before: false }, before)
      assert_equal({ number: client.fileno, site: nil, before: true }, after)
    end
  end

  # The server's word has come, but nobody has taken it.
  def test_bytes_that_wait_in_a_tcp_connection_are_no_use
    connection do |client, server|
      use = use_of([client])
      use.start
      server << "news"
      assert(client.wait_readable(10))
      assert_empty(use.used)
      server.close
      assert_equal("news", IO.for_fd(client.fileno, autoclose: false).read)
      assert_equal([client.fileno], use.used.map { |one| one[:number] })
    end
  end

  def test_the_end_of_a_tcp_connection_is_no_use
    connection do |client, server|
      use = use_of([client])
      use.start
      server.close
      assert(client.wait_readable(10))
      assert_empty(use.used)
    end
  end

  def test_a_file_whose_position_moves
    Tempfile.create do |file|
      file.write("hello")
      file.flush
      assert_empty(used_of(file) { file.pread(1, 0) })
      assert_equal([file.fileno], used_of(file) { file.seek(0) }.map { |one| one[:number] })
    end
  end

  def test_an_eventfd_that_is_written_to
    make = Fiddle::Function.new(Fiddle.dlopen(nil)["eventfd"], [Fiddle::TYPE_INT, Fiddle::TYPE_INT], Fiddle::TYPE_INT)
    event = IO.for_fd(make.call(0, 0))
    assert_empty(used_of(event) { nil })
    assert_equal([event.fileno], used_of(event) { c_write(event, [1].pack("Q")) }.map { |one| one[:number] })
  ensure
    event&.close
  end

  ARMED = "pos:\t0\nsettime flags: 00\nit_value: (%d, 5)\nit_interval: (%d, 0)\n"

  def test_what_a_timer_has_left_falls_by_itself
    nine, ten, repeating = [[9, 0], [10, 0], [10, 10]].map { |figures| timer(*figures) }
    use = use_of([])

    refute(use.send(:moved?, ten, nine))
    assert(use.send(:moved?, nine, ten))
    assert(use.send(:moved?, ten, repeating))
    refute(use.send(:moved?, timer(1, 10), repeating))
  end

  def test_another_file_under_the_same_number_is_no_use
    connection do |client, _|
      use = use_of([client])
      use.start
      client.reopen(File::NULL)
      assert_empty(use.used)
    end
  end

  private

  def timer(left, interval) = Use::EventSource.state(format(ARMED, left, interval))

  def use_of(ios)
    open = Dir.children("/proc/self/fd").map(&:to_i)
    Use.new(open - ios.map(&:fileno), ios)
  end

  def used_of(*ios)
    use = use_of(ios)
    use.start
    yield
    use.used
  end
end
