# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "pando/cluster/monitor"

# A process that is asked something: its answer, its errors, and its end.
class HelperProcessTest < Minitest::Test
  def setup
    @poller = Pando::Sys::Poller.new
  end

  def ask(script, patience: 60.0)
    Pando::Cluster::HelperProcess.new(@poller, [RbConfig.ruby, "--disable=gems", "-e", script], { "A" => "b" },
                                      patience)
  end

  def wait_for(helper)
    @poller.wait(0.1) until helper.proceed
    helper
  end

  def test_its_answer_and_its_errors
    helper = wait_for(ask("IO.for_fd(3, 'w').write(ENV['A'] + ENV.size.to_s); warn 'oh'; exit 3"))

    assert_equal(%w[b1 oh], [helper.answer, helper.errors.chomp])
    assert_equal("status 3", helper.ending.to_s)
    refute_predicate(helper, :late?)
  end

  def test_one_that_says_too_much_is_not_held_up_and_not_believed_beyond_the_limit
    helper = wait_for(ask("$stderr.write('x' * 1_000_000); IO.for_fd(3, 'w').write('y' * 1_000_000)"))

    assert_equal([Pando::Cluster::HelperProcess::ANSWER_BYTES, Pando::Cluster::HelperProcess::ERROR_BYTES],
                 [helper.answer.bytesize, helper.errors.bytesize])
    assert_predicate(helper.ending, :success?)
  end

  def test_one_that_takes_too_long_is_killed
    helper = wait_for(ask("warn 'wait'; sleep", patience: 0.0))

    assert_predicate(helper, :late?)
    assert_predicate(helper.ending, :killed?)
  end

  def test_a_process_that_holds_its_pipes_afterwards_is_not_waited_for
    helper = wait_for(ask("IO.for_fd(3, 'w').write(Process.spawn('sleep 60').to_s)"))
    Process.kill("KILL", helper.answer.to_i)
    begin
      Process.wait(helper.answer.to_i)
    rescue Errno::ECHILD
      nil # this process is nobody's subreaper
    end

    assert_predicate(helper.ending, :success?)
  end

  def test_one_that_is_abandoned
    helper = ask("sleep")
    helper.abandon

    assert(helper.proceed)
    assert_predicate(helper.ending, :killed?)
    assert_empty(@poller.wait(0))
  end

  def test_no_descriptor_is_left_behind
    GC.start # what others have left may be closed at any time
    before = Dir.children("/proc/self/fd").size
    wait_for(ask("exit"))

    assert_operator(Dir.children("/proc/self/fd").size, :<=, before)
    assert_raises(Errno::ENOENT) { Pando::Cluster::HelperProcess.new(@poller, ["/no/such/program"], {}, 1.0) }
    assert_operator(Dir.children("/proc/self/fd").size, :<=, before)
  end
end
