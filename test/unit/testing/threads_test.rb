# frozen_string_literal: true

require "test_helper"
require "pando/testing"

class TestingThreadsTest < Minitest::Test
  def setup
    @ledger = Pando::Testing::Threads.new
  end

  def teardown
    @thread&.kill&.join
  end

  def test_a_thread_that_nobody_starts_again_is_lost
    begin_thread
    @ledger.before_fork
    @thread.kill.join # as a fork does
    lost = @ledger.findings

    assert_equal [:lost_thread], lost.map(&:kind)
    assert_equal "#{__FILE__}:#{method(:begin_thread).source_location.last + 1}", lost.first.location
  end

  def test_one_that_is_started_again_is_not
    begin_thread
    @ledger.before_fork
    @thread.kill.join
    begin_thread
    @ledger.before_fork
    @thread.kill.join # and not needed again

    assert_empty @ledger.findings
  end

  private

  def begin_thread
    @thread = Thread.new { sleep }
  end
end
