# frozen_string_literal: true

require "test_helper"
require "pando/swarm/first_word"

class FirstWordTest < Minitest::Test
  def setup
    @first = Pando::Swarm::FirstWord.new
  end

  def test_who_waits_goes_on_once_all_is_well
    refute_predicate @first, :said?
    thread = Thread.new { @first.wait }
    @first.say

    assert_nil thread.value
    assert_predicate @first, :said?
  end

  def test_an_error_is_raised_in_who_waits
    @first.say(Errno::ECONNREFUSED.new)

    assert_raises(Errno::ECONNREFUSED) { @first.wait }
  end

  def test_what_is_said_later_is_not_heard
    @first.say
    @first.say(RuntimeError.new("too late"))

    assert_nil @first.wait
  end
end
