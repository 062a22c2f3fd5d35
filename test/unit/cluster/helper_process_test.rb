# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "pando/cluster/monitor"
require_relative "support/clock"

# A process that is asked something: its answer, its errors, and its end.
class HelperProcessTest < Minitest::Test
  def setup
    @poller = Pando::Sys::Poller.new
  end

  def ask(script, patience: 60.0)
    Pando::Cluster::HelperProcess.new(@poller, [RbConfig.ruby, "--disable=gems", "-e", script], { "A" => "b" },
                                      patience)
  end

  def signal_that_ended(pid) = Signal.signame(Process.wait2(pid).last.termsig.to_i)

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

  def test_one_that_cannot_be_watched_is_killed
    pid = nil
    Pando::Sys.stub(:pidfd_open, ->(number) { (pid = number) && raise(Errno::EMFILE) }) do
      assert_raises(Errno::EMFILE) { ask("sleep 5") }
    end

    assert_equal("KILL", signal_that_ended(pid))
  end

  def test_one_that_the_poller_has_no_room_for_is_killed_and_forgotten
    process = nil
    @poller.define_singleton_method(:add) do |io, subject|
      process ? raise(Errno::ENOMEM) : super(process = io, subject)
    end
    assert_raises(Errno::ENOMEM) { ask("sleep 5") }

    assert_equal("KILL", signal_that_ended(process.pid))
    assert_predicate(process.to_io, :closed?)
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

class ClusterExaminerTest < Minitest::Test
  include ClusterSupport::Clock

  Examiner = Pando::Cluster::Examiner
  PATIENCE = 90 # seconds

  def setup
    @poller = Pando::Sys::Poller.new
    @found = []
  end

  def teardown
    @poller.close
    super
  end

  def examiner(script)
    @examiner ||= Examiner.new(@poller, script && [RbConfig.ruby, "--disable=gems", "-e", script])
  end

  # What is found out about pid 42 by this script.
  def found_by(script)
    examiner(script).examine(42) { |text| @found << text }
    proceed until @found.size == 1
    @found.first
  end

  def proceed
    refute_empty @poller.wait(PATIENCE)
    @examiner.proceed
  end

  def test_what_the_command_writes_about_the_process
    assert_equal "stuck: 42", found_by('IO.for_fd(3, "w").write("stuck: #{ARGV.first}")') # rubocop:disable Lint/InterpolationCheck
    assert_nil @examiner.due
    assert_empty @poller.wait(0), "nothing is watched any more"
  end

  def test_a_command_that_fails_or_writes_nothing
    assert_nil found_by("exit!(1)")
  end

  def test_one_that_hangs_is_ended
    examiner("IO.for_fd(3, 'w').syswrite('so far'); sleep").examine(42) { |text| @found << text }
    elapse(Examiner::TIMEOUT + 1)
    @examiner.proceed
    proceed until @found.size == 1

    assert_includes [nil, "so far"], @found.first
  end

  # The reader of the log has died.
  def test_its_errors_cannot_be_written
    before = $stderr.dup
    reader, writer = IO.pipe
    $stderr.reopen(writer)
    [reader, writer].each(&:close)

    assert_nil found_by("$stderr.puts('Ignoring a gem'); exit!(0)")
  ensure
    $stderr.reopen(before)
  end

  def test_a_long_text
    text = found_by("IO.for_fd(3, 'w').write_nonblock('x' * 60_000); exit!(0)")

    assert_operator text.bytesize, :<=, Pando::Cluster::HelperProcess::ANSWER_BYTES
  end

  def test_bytes_that_are_no_text
    assert_equal "?", found_by("IO.for_fd(3, 'w').syswrite(\"\\xff\")")
  end

  def test_without_a_command
    examiner(nil).examine(42) { |text| @found << text }

    assert_equal [nil], @found
  end

  def test_a_command_that_is_not_there
    Examiner.new(@poller, ["/nonexistent"]).examine(42) { |text| @found << text }

    assert_equal [nil], @found
  end

  def test_several_at_once
    examiner("IO.for_fd(3, 'w').write(ARGV.first)")
    [1, 2, 3].each { |pid| @examiner.examine(pid) { |text| @found << text } }
    assert_operator @examiner.due, :>, now
    proceed until @found.size == 3

    assert_equal %w[1 2 3], @found.sort
  end
end
