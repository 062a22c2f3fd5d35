# frozen_string_literal: true

require "test_helper"
require "pando/native"

# The decoder of chunked bodies; each case in one piece, byte by byte and cut in two.
class HTTPChunkedTest < Minitest::Test
  BODIES = {
    "0\r\n\r\n" => "",
    "5\r\nhello\r\n0\r\n\r\n" => "hello",
    "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n" => "hello world",
    "A\r\n0123456789\r\n0\r\n\r\n" => "0123456789",
    "a\r\n0123456789\r\n0\r\n\r\n" => "0123456789",
    "000000000000005\r\nhello\r\n000\r\n\r\n" => "hello",
    "2\r\n\r\n\r\n0\r\n\r\n" => "\r\n",
    "3\r\n0\r\n\r\n0\r\n\r\n" => "0\r\n",
    "1\r\n\0\r\n0\r\n\r\n" => "\0",
    "5;a\r\nhello\r\n0\r\n\r\n" => "hello",
    "5;a=b\r\nhello\r\n0;c\r\n\r\n" => "hello",
    "5 ; a = b ;c\r\nhello\r\n0\r\n\r\n" => "hello",
    "5;a=\"b \\\" ; c\"\r\nhello\r\n0\r\n\r\n" => "hello",
    "5;a=\"\"\r\nhello\r\n0\r\n\r\n" => "hello",
    "5;a=b;c=\"d\" ;e\r\nhello\r\n0\r\n\r\n" => "hello",
    "0\r\nX: y\r\n\r\n" => "",
    "0\r\nX:\r\nContent-Length: 5\r\n\r\n" => ""
  }.freeze

  BODIES.each do |bytes, body|
    define_method("test_body_#{bytes.inspect}") do
      each_cut(bytes) { |cuts| assert_equal [bytes.bytesize, body], decode(bytes, cuts) }
    end
  end

  MALFORMED = [
    "\r\n", "x\r\n", "-5\r\n", "+5\r\n", " 5\r\n", "0x5\r\n", "5\n", "5\rx", "5 \r\n", "5\t\r\n", "5,\r\n", "g\r\n",
    "1000000000000000\r\n", "0000000000000000\r\n", "fffffffffffffffff\r\n", "5;\r\n", "5;;a\r\n", "5;=b\r\n",
    "5;a=\r\n", "5;a=b c\r\n", "5;a=\"b\r\n", "5;a=\"b\"c\r\n", "5;a=\"b\n", "5;a=\"\\\x01\"\r\n", "5;a\n", "5;a\0\r\n",
    "5;a(\r\n",
    "5;a \r\n", "5;a=b \r\n", "5\r\nhello0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\rx", "5\r\nhell\r\n0\r\n\r\n",
    "5\r\nhello!\r\n0\r\n\r\n", "5\r\nhello\r\n\r\n", "5\r\nhello\r\n;a\r\n", "0\r\n\n", "0\r\n\rx",
    "0\r\n X: y\r\n\r\n",
    "0\r\nX\r\n\r\n", "0\r\nX : y\r\n\r\n", "0\r\n: y\r\n\r\n", "0\r\nX: y\n\r\n", "0\r\nX: \0\r\n\r\n",
    "0\r\nX: y\r\n z\r\n\r\n",
    "0\r\n0\r\n\r\n"
  ].freeze

  MALFORMED.each do |bytes|
    define_method("test_malformed_#{bytes.inspect}") do
      each_cut(bytes) { |cuts| assert_equal false, decode(bytes, cuts).first }
    end
  end

  def test_an_unfinished_body_wants_more
    whole = "5\r\nhello\r\n0\r\n\r\n"
    (0...whole.bytesize).each { |size| assert_nil decode(whole[0, size], [size]).first }
  end

  def test_what_follows_belongs_to_somebody_else
    assert_equal [15, "hello"], decode("5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1", [29])
  end

  def test_after_the_end_nothing_more_is_taken
    decoder = Pando::HTTP::Chunked.new
    assert_equal 5, decoder.decode("0\r\n\r\n", +"")
    assert_equal 0, decoder.decode("5\r\nhello\r\n", out = +"")
    assert_empty out
  end

  def test_an_error_is_final_and_says_why
    decoder = Pando::HTTP::Chunked.new
    assert_equal false, decoder.decode("x", +"")
    assert_equal false, decoder.decode("0\r\n\r\n", +"")
    assert_equal "malformed chunk size", decoder.reason
  end

  def test_the_rest_of_a_chunk_is_announced_by_its_size_line
    decoder = Pando::HTTP::Chunked.new
    rests = ["5", "0;a=b\r", "\n", "hello", "x" * 75, "\r\n", "fffffffffffffff\r\nx"].map do |text|
      assert_nil decoder.decode(text, +"")
      decoder.announced
    end

    assert_equal [0, 0, 80, 75, 0, 0, (16**15) - 2], rests
  end

  def test_extensions_are_bounded_in_the_whole_body
    assert_decoded "1;#{"a" * 8191}\r\nx\r\n0\r\n\r\n"
    refute_decoded "1;#{"a" * 8192}\r\nx\r\n0\r\n\r\n"
    chunk = "1;#{"a" * 1023}\r\nx\r\n"
    assert_decoded "#{chunk * 8}0\r\n\r\n"
    refute_decoded "#{chunk * 8}0;a\r\n\r\n"
  end

  def test_the_trailer_section_is_bounded
    assert_decoded "0\r\nX: #{"a" * 8187}\r\n\r\n"
    refute_decoded "0\r\nX: #{"a" * 8188}\r\n\r\n"
    field = "X:\r\n"
    assert_decoded "0\r\n#{field * 2048}\r\n"
    refute_decoded "0\r\n#{field * 2049}\r\n"
  end

  def test_input_and_output_must_differ
    text = +"0\r\n\r\n"
    assert_raises(ArgumentError) { Pando::HTTP::Chunked.new.decode(text, text) }
  end

  private

  def assert_decoded(bytes) = assert_equal(bytes.bytesize, decode(bytes, [bytes.bytesize]).first)
  def refute_decoded(bytes) = assert_equal(false, decode(bytes, [bytes.bytesize]).first)

  def each_cut(bytes, &block)
    block.call([bytes.bytesize])
    block.call((1..bytes.bytesize).to_a)
    (1...bytes.bytesize).each { |cut| block.call([cut, bytes.bytesize]) }
  end

  def decode(bytes, cuts)
    decoder = Pando::HTTP::Chunked.new
    from = 0
    output = +"".b
    cuts.each do |cut|
      verdict = decoder.decode(bytes.byteslice(from, cut - from), output)
      return [verdict && (from + verdict), output] unless verdict.nil?

      from = cut
    end
    [nil, output]
  end
end
