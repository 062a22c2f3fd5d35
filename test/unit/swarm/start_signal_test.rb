# frozen_string_literal: true

require "test_helper"
require "pando/swarm/start_signal"

class StartSignalTest < Minitest::Test
  def setup
    @signal = Pando::Swarm::StartSignal.new
  end

  def test_success_ends_the_wait
    refute_predicate @signal, :set?
    thread = Thread.new { @signal.wait }
    @signal.set

    assert_nil thread.value
    assert_predicate @signal, :set?
  end

  def test_an_error_is_raised_in_the_waiting_thread
    @signal.set(Errno::ECONNREFUSED.new)

    assert_raises(Errno::ECONNREFUSED) { @signal.wait }
  end

  def test_only_the_first_outcome_counts
    @signal.set
    @signal.set(RuntimeError.new("too late"))

    assert_nil @signal.wait
  end
end
