# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "pando/cluster/inquiry"

# A process that is asked something: its answer, its complaints, and its end.
class InquiryTest < Minitest::Test
  def setup
    @poller = Pando::Sys::Poller.new
  end

  def ask(script, patience: 60.0)
    Pando::Cluster::Inquiry.new(@poller, [RbConfig.ruby, "--disable=gems", "-e", script], { "A" => "b" }, patience)
  end

  def wait_for(inquiry)
    @poller.wait(0.1) until inquiry.proceed
    inquiry
  end

  def test_what_it_answers_and_what_it_complains_of
    inquiry = wait_for(ask("IO.for_fd(3, 'w').write(ENV['A'] + ENV.size.to_s); warn 'oh'; exit 3"))

    assert_equal(%w[b1 oh], [inquiry.answer, inquiry.complaint.chomp])
    assert_equal("status 3", inquiry.ending.to_s)
    refute_predicate(inquiry, :late?)
  end

  def test_one_that_says_too_much_is_not_held_up_and_not_believed_beyond_the_limit
    inquiry = wait_for(ask("$stderr.write('x' * 1_000_000); IO.for_fd(3, 'w').write('y' * 1_000_000)"))

    assert_equal([Pando::Cluster::Inquiry::ANSWER_BYTES, Pando::Cluster::Inquiry::COMPLAINT_BYTES],
                 [inquiry.answer.bytesize, inquiry.complaint.bytesize])
    assert_predicate(inquiry.ending, :success?)
  end

  def test_one_that_takes_too_long_is_killed
    inquiry = wait_for(ask("warn 'wait'; sleep", patience: 0.0))

    assert_predicate(inquiry, :late?)
    assert_predicate(inquiry.ending, :killed?)
  end

  def test_who_holds_its_pipes_afterwards_is_not_waited_for
    inquiry = wait_for(ask("IO.for_fd(3, 'w').write(Process.spawn('sleep 60').to_s)"))
    Process.kill("KILL", inquiry.answer.to_i)
    begin
      Process.wait(inquiry.answer.to_i)
    rescue Errno::ECHILD
      nil # this process is nobody's subreaper
    end

    assert_predicate(inquiry.ending, :success?)
  end

  def test_one_that_nobody_wants_to_know_of_any_more
    inquiry = ask("sleep")
    inquiry.abandon

    assert(inquiry.proceed)
    assert_predicate(inquiry.ending, :killed?)
    assert_empty(@poller.wait(0))
  end

  def test_no_descriptor_is_left_behind
    GC.start # what others have left may be closed at any time
    before = Dir.children("/proc/self/fd").size
    wait_for(ask("exit"))

    assert_operator(Dir.children("/proc/self/fd").size, :<=, before)
    assert_raises(Errno::ENOENT) { Pando::Cluster::Inquiry.new(@poller, ["/no/such/program"], {}, 1.0) }
    assert_operator(Dir.children("/proc/self/fd").size, :<=, before)
  end
end
