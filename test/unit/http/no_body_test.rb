# frozen_string_literal: true

require "test_helper"
require "stringio"
require "pando/http/request_body"

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
