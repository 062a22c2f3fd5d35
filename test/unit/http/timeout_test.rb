# frozen_string_literal: true

require "test_helper"
require "pando/http/timeout"
require_relative "../cluster/support/clock"
require_relative "support/fake_worker"

# Its clock, which stands still while it is suspended.
class HTTPSuspendedTimeoutTest < Minitest::Test
  include ClusterSupport::Clock

  def test_suspended_it_neither_runs_out_nor_fires
    worker = HTTPSupport::FakeWorker.new
    timeout = Pando::HTTP::Timeout.new(worker, 10.0, 2.0)
    elapse(4)
    result = timeout.suspend do
      timeout.fire
      elapse(1000)
      :result
    end

    assert_equal :result, result
    assert_in_delta 6.0, timeout.remaining
    calls = worker.calls.map { |name, soft, hard| [name, soft&.round(3), hard&.round(3)] }
    assert_equal [[:job_deadline, nil, nil], [:job_deadline, 6.0, 8.0]], calls
    assert_raises(Pando::RequestTimeout) { timeout.fire }
  end
end

# env["pando.timeout"] as the application sees it.
class HTTPTimeoutTest < Minitest::Test
  def setup
    @worker = HTTPSupport::FakeWorker.new
    @timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0)
  end

  def test_what_remains
    assert_in_delta 10.0, @timeout.remaining, 1
    assert_operator @timeout.remaining, :<=, 10.0
  end

  def test_extending_moves_the_kill_too
    left = @timeout.extend_by(5)

    assert_in_delta 15.0, left, 1
    assert_in_delta 15.0, @timeout.remaining, 1
    name, soft, hard = @worker.calls.first
    assert_equal [:job_deadline, left, 2.0], [name, soft, (hard - soft).round(6)]
  end

  def test_extending_takes_a_positive_number
    [0, -1, nil, "5", Float::NAN, Float::INFINITY, 1i].each do |seconds|
      assert_raises(ArgumentError, seconds.inspect) { @timeout.extend_by(seconds) }
    end
    assert_empty @worker.calls
  end

  def test_disabling
    @timeout.disable!

    assert_equal [[:job_deadline, nil, nil]], @worker.calls
    assert_nil @timeout.remaining
    assert_nil @timeout.extend_by(5)
    assert_equal 1, @worker.calls.size
  end

  def test_without_a_deadline
    timeout = Pando::HTTP::Timeout.new(@worker, nil, 2.0)

    assert_nil timeout.remaining
    assert_nil timeout.extend_by(5)
    assert_empty @worker.calls
  end

  def test_when_the_answer_is_sent_it_begins_anew_and_can_be_moved
    @timeout.begin_anew

    assert_equal [[:job_deadline, 10.0, 12.0]], @worker.calls
    assert_in_delta 10.0, @timeout.remaining, 1
    assert_in_delta 15.0, @timeout.extend_by(5), 1
  end

  def test_after_a_streamed_body_it_begins_anew
    timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0, streaming: 600.0)
    timeout.answering
    timeout.begin_anew

    assert_equal [[:job_streams], [:job_deadline, 600.0, 602.0], [:job_deadline, 10.0, 12.0]], @worker.calls
  end

  def test_what_runs_after_the_answer_without_a_deadline_does_not_keep_a_leaving_worker
    2.times { Pando::HTTP::Timeout.new(@worker, nil, 2.0).begin_anew }
    @timeout.disable!
    @timeout.begin_anew

    assert_equal [[:job_streams], [:job_streams], [:job_deadline, nil, nil], [:job_streams]], @worker.calls
    assert_nil @timeout.remaining
  end

  def test_the_deadline_of_a_streamed_body_ends_with_it
    timeout = Pando::HTTP::Timeout.new(@worker, nil, 2.0, streaming: 600.0)
    timeout.answering
    timeout.begin_anew

    assert_equal [:job_deadline, nil, nil], @worker.calls.last
    assert_includes @worker.calls, [:job_streams]
  end

  def test_a_kill_that_follows_a_timeout_is_not_moved
    assert_raises(Pando::RequestTimeout) { @timeout.fire }
    @timeout.begin_anew

    assert_empty @worker.calls
  end

  def test_kept_beyond_its_request_it_does_nothing
    @timeout.finish
    @timeout.extend_by(5)
    @timeout.disable!
    @timeout.fire

    assert_nil @timeout.remaining
    assert_empty @worker.calls
    refute_predicate @timeout, :fired?
  end

  def test_suspended_the_worker_must_come_back_some_time
    timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0, patience: 30.0)
    timeout.suspend { nil }

    assert_equal [:job_deadline, nil, 32.0], @worker.calls.first
  end

  def test_without_a_deadline_there_is_nothing_to_suspend
    @timeout.finish

    assert_equal(:result, @timeout.suspend { :result })
    assert_empty @worker.calls
  end

  def test_the_head_of_the_answer_ends_it_once
    2.times { @timeout.answering }

    assert_equal [[:job_streams], [:job_deadline, nil, nil]], @worker.calls
    assert_nil @timeout.remaining
    assert_equal(:result, @timeout.suspend { :result })
    assert_nil @timeout.extend_by(5)
  end

  def test_a_stream_with_a_time_of_its_own
    timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0, streaming: 60.0)
    timeout.answering

    assert_equal [:job_deadline, 60.0, 62.0], @worker.calls.last
    assert_in_delta 60.0, timeout.remaining, 1
    assert_in_delta 65.0, timeout.extend_by(5), 1
  end

  def test_a_stream_may_have_a_time_where_a_request_has_none
    timeout = Pando::HTTP::Timeout.new(@worker, nil, 2.0, streaming: 60.0)
    timeout.answering

    assert_equal [:job_deadline, 60.0, 62.0], @worker.calls.last
  end

  def test_a_disabled_one_stays_so_behind_the_head
    timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0, streaming: 60.0)
    timeout.disable!
    timeout.answering

    assert_equal [[:job_deadline, nil, nil], [:job_streams]], @worker.calls
  end

  def test_a_late_answer_is_refused_unless_the_application_stands_by_it
    refute_predicate @timeout, :handled!
    @timeout.check
    assert_raises(Pando::RequestTimeout) { @timeout.fire(["here:1"]) }
    error = assert_raises(Pando::RequestTimeout) { @timeout.check }

    assert_equal ["here:1"], error.backtrace
    assert_predicate @timeout, :exceeded?
    assert @timeout.handled!
    refute_predicate @timeout, :exceeded?
    @timeout.check
  end

  def test_it_fires_once
    assert_raises(Pando::RequestTimeout) { @timeout.fire }
    @timeout.fire

    assert_predicate @timeout, :fired?
  end
end
