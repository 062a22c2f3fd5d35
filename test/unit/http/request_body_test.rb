# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "stringio"
require "pando/http/request_body"
require_relative "../sys/support/in_child"

class HTTPSpoolTest < Minitest::Test
  include SysSupport::InChild

  def spool(*data, memory: 10, expected: 0)
    data.inject(Pando::HTTP::Spool.new(memory, expected)) { |spool, piece| spool << piece }
  end

  def test_a_small_body_stays_in_memory
    input = spool("hello", "world").input

    assert_kind_of StringIO, input
    assert_equal "helloworld", input.read
    input.rewind
    assert_equal "hello", input.read(5)
  end

  def test_a_large_body_goes_to_a_file_without_a_name
    input = spool("hello", "world", "!").input

    assert_kind_of File, input
    assert_equal "helloworld!", input.read
    assert_equal 0, input.stat.nlink
    input.rewind
    assert_equal "hello", input.read(5)
  end

  def test_a_body_announced_as_large_goes_there_at_once
    assert_kind_of File, spool("a", expected: 11).input
    assert_kind_of StringIO, spool("a", expected: 10).input
  end

  def test_both_are_binary_as_rack_demands
    [spool("\xFF\r\n"), spool("\xFF\r\n", memory: 0)].each do |body|
      input = body.input

      assert_equal Encoding::BINARY, input.external_encoding
      assert_equal "\xFF\r\n".b, input.gets
      assert_nil input.gets
    end
  end

  def test_it_counts
    assert_equal 6, spool("äöü").size
  end

  def test_closing_frees_the_file_even_if_the_application_has_closed_it
    spool = spool("hello world!")
    file = spool.input
    spool.close
    assert_predicate file, :closed?
    spool.close
  end

  # In a process of its own, for the limit goes down only.
  def test_where_there_is_no_room_the_client_is_told
    outcome = in_child do
      trap("XFSZ", "IGNORE") # as the monitor does for all
      Process.setrlimit(:FSIZE, 20_000)
      [19_991, 19_992, 100_000].map do |bytes|
        spool("x" * 9, "x" * bytes).input.size
      rescue Pando::HTTP::Refused => e
        [e.status, e.message[/RLIMIT_FSIZE.*/]]
      end
    end

    assert_equal [20_000, [503, reason = "RLIMIT_FSIZE, `ulimit -f`, is 20000 bytes)"], [503, reason]], outcome
  end

  # As in an image without /tmp.
  def test_without_a_temporary_directory_the_client_is_told
    none = -> { raise ArgumentError, "could not find a temporary directory" }
    Dir.stub(:tmpdir, none) do
      [-> { spool("hello", "world!") }, -> { spool(expected: 11) }].each do |large|
        refused = assert_raises(Pando::HTTP::Refused, &large)

        assert_equal [503, "the body cannot be kept: could not find a temporary directory"],
                     [refused.status, refused.message]
      end
      assert_equal "hello", spool("hello").input.read
    end
  end

  # A file system that has become read-only is no place for temporary files any more.
  def test_the_reason_names_the_folder_that_was_there
    folder = Dir.tmpdir
    spool = spool("hello", "world!")
    Dir.stub(:tmpdir, -> { raise ArgumentError, "could not find a temporary directory" }) do
      broken = ->(*) { raise Errno::EROFS }
      refused = assert_raises(Pando::HTTP::Refused) do
        spool.instance_variable_get(:@file).stub(:<<, broken) { spool << "more" }
      end

      assert_equal "the body cannot be kept in #{folder}: Read-only file system", refused.message
    end
  end

  def test_where_the_file_system_knows_no_unnamed_files
    spool = Pando::HTTP::Spool.allocate
    file = spool.send(:named_and_unlinked_file)

    assert_equal [0, 0o600], [file.stat.nlink, file.stat.mode & 0o777]
  ensure
    file&.close
  end
end

# It does what an empty StringIO does.
class HTTPNoBodyTest < Minitest::Test
  NONE = Pando::HTTP::NoBody::NONE

  CALLS = { read: [[], [nil], [0], [5]], gets: [[]], getc: [[]], getbyte: [[]], rewind: [[]], size: [[]], length: [[]],
            eof?: [[]], pos: [[]], tell: [[]], seek: [[0]], external_encoding: [[]] }.freeze

  CALLS.each do |name, lists|
    lists.each do |arguments|
      define_method("test_#{name}_#{arguments.inspect}") do
        expected = StringIO.new("".b).public_send(name, *arguments)
        actual = NONE.public_send(name, *arguments)

        expected.nil? ? assert_nil(actual) : assert_equal(expected, actual)
      end
    end
  end

  def test_a_buffer_is_emptied_and_returned
    [nil, 0].each do |length|
      buffer = +"old"
      assert_same buffer, NONE.read(length, buffer)
      assert_empty buffer
    end
    buffer = +"old"
    assert_nil NONE.read(5, buffer)
    assert_empty buffer
  end

  def test_what_it_returns_may_be_changed
    refute_predicate NONE.read, :frozen?
  end

  def test_a_negative_length_is_an_error
    assert_raises(ArgumentError) { NONE.read(-1) }
  end

  def test_each_yields_nothing
    NONE.each { flunk }
    assert_empty NONE.each.to_a
  end

  def test_closing_does_not_close_it_for_the_next_request
    NONE.close
    assert_equal "", NONE.read
  end
end
