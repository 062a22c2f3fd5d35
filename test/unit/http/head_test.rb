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

  def test_a_value_is_a_line
    assert_equal "a: b c\r\n", Head.line("a", "b c")
    assert_equal "a: \r\n", Head.line("a", "")
    assert_equal "a: \xC3\xA4\t\r\n".b, Head.line("a", "ä\t")
  end

  def test_lines_of_a_value_are_fields_of_that_name_and_no_other
    assert_equal "a: b\r\na: c: d\r\n", Head.line("a", "b\nc: d")
    assert_equal "a: b\r\n", Head.line("a", "b\n")
    assert_equal "a: \r\na: b\r\n", Head.line("a", "\nb")
  end

  EARLY_ENDS = ["b\r\nc: d", "b\r", "\rb", "b\0", "b\x01", "b\x7F", "b\r\n\r\nbody", "ok\nb\r"].freeze

  def test_what_would_end_a_line_early_is_refused
    EARLY_ENDS.each { |value| assert_nil Head.line("a", value), value.inspect }
  end

  def test_only_strings
    assert_raises(TypeError) { Head.line("a", 1) }
    assert_raises(TypeError) { Head.kind(:a) }
  end

  # Answers for what Head.lines does not decide.
  class Asked
    attr_reader :questions

    def initialize(&answer)
      @answer = answer
      @questions = []
    end

    private

    def add(name, value)
      @questions << [name, value]
      @answer&.call(name, value)
    end
  end

  def test_plain_fields_are_lines
    asked = Asked.new

    assert_equal "a: b\r\nContent-Type: c\r\n", Head.lines({ "a" => "b", "Content-Type" => "c" }, asked)
    assert_equal "a: b\r\n", Head.lines([%w[a b]], asked)
    assert_equal "", Head.lines({}, asked)
    assert_empty asked.questions
  end

  def test_all_others_are_asked_for
    fields = { "date" => "x", "Connection" => "close", "a b" => "c", "a" => %w[b c], b: "c", "c" => nil, "d" => "1\n2" }
    EARLY_ENDS.each_with_index { |value, number| fields["e#{number}"] = value }
    asked = Asked.new { |name, _value| "<#{name}>" if name == "a" }

    assert_equal "f: g\r\n<a>", Head.lines({ "f" => "g", **fields }, asked)
    assert_equal fields.to_a, asked.questions
  end

  def test_a_length_is_noted
    asked = Asked.new
    { "0" => 0, "12" => 12, "9" * 18 => (10**18) - 1 }.each do |text, length|
      assert_equal "", Head.lines({ "Content-Length" => text }, asked)
      assert_equal length, asked.instance_variable_get(:@length)
    end
    assert_empty asked.questions
    ["", "-1", "1 ", "0x1", "9" * 19, "1, 1", 5].each { |text| Head.lines({ "content-length" => text }, asked) }

    assert_equal 7, asked.questions.size
  end

  def test_a_hash_that_goes_its_own_way
    fields = Class.new(Hash) { def each = yield("a", "b") }.new

    assert_equal "a: b\r\n", Head.lines(fields, Asked.new)
  end

  def test_long_heads
    fields = (1..300).to_h { |number| ["field-#{number}", "x" * (number * 10)] }

    assert_equal fields.map { |name, value| "#{name}: #{value}\r\n" }.join, Head.lines(fields, Asked.new)
    assert_equal "a: #{"b" * 5000}\r\n", Head.line("a", "b" * 5000)
  end

  def test_what_the_application_raises_while_it_is_asked
    assert_raises(IndexError) { Head.lines({ "a" => "b", "date" => "c" }, Asked.new { raise IndexError }) }
    assert_raises(NoMethodError) { Head.lines(Object.new, Asked.new) }
    assert_raises(TypeError) { Head.lines({ "date" => "c" }, Asked.new { 1 }) }
  end

  def test_chunk_lines
    { 0 => "0\r\n", 1 => "1\r\n", 15 => "f\r\n", 16 => "10\r\n", 4096 => "1000\r\n", 0xabcdef => "abcdef\r\n",
      (1 << 64) - 1 => "ffffffffffffffff\r\n" }.each { |size, line| assert_equal line, Head.chunk_line(size) }
  end
end
