# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "pando/cluster/monitor"
require_relative "support/clock"

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
