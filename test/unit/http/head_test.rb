# frozen_string_literal: true

require "test_helper"
require "pando/native"

# What an application may put into the head of a response.
class HTTPHeadTest < Minitest::Test
  Head = Pando::HTTP::Head

  def test_names_that_mean_something_to_the_server
    kinds = { "Content-Length" => :content_length, "content-length" => :content_length,
              "Transfer-Encoding" => :transfer_encoding, "connection" => :connection, "Keep-Alive" => :connection,
              "DATE" => :date, "Status" => :hidden, "rack.hijack" => :hidden, "Rack.x" => :hidden,
              "content-type" => nil, "x" => nil, "rack." => nil, "x-date" => nil, "dates" => nil }
    kinds.each { |name, kind| kind ? assert_equal(kind, Head.kind(name), name) : assert_nil(Head.kind(name), name) }
  end

  def test_names_that_are_none
    ["", " ", "a b", "a:", "a\r\nb", "a\n", "a\0", "ä", "a(", "\"a\"", "a/b", "a\x7F"].each do |name|
      assert_equal false, Head.kind(name), name.inspect
    end
  end

  def append(name, value)
    head = +"".b
    [Head.append(head, name, value), head]
  end

  def test_a_value_is_a_line
    assert_equal [true, "a: b c\r\n"], append("a", "b c")
    assert_equal [true, "a: \r\n"], append("a", "")
    assert_equal [true, "a: \xC3\xA4\t\r\n".b], append("a", "ä\t")
  end

  def test_lines_of_a_value_are_fields_of_that_name_and_no_other
    assert_equal [true, "a: b\r\na: c: d\r\n"], append("a", "b\nc: d")
    assert_equal [true, "a: b\r\n"], append("a", "b\n")
    assert_equal [true, "a: \r\na: b\r\n"], append("a", "\nb")
  end

  def test_what_would_end_a_line_early_is_refused_and_nothing_is_appended
    ["b\r\nc: d", "b\r", "\rb", "b\0", "b\x01", "b\x7F", "b\r\n\r\nbody", "ok\nb\r"].each do |value|
      assert_equal [false, ""], append("a", value), value.inspect
    end
  end

  def test_only_strings
    assert_raises(TypeError) { append("a", 1) }
    assert_raises(TypeError) { Head.kind(:a) }
  end

  def test_chunk_lines
    { 0 => "0\r\n", 1 => "1\r\n", 15 => "f\r\n", 16 => "10\r\n", 4096 => "1000\r\n", 0xabcdef => "abcdef\r\n",
      (1 << 64) - 1 => "ffffffffffffffff\r\n" }.each { |size, line| assert_equal line, Head.chunk_line(size) }
  end
end
