# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/testing/strict"

# The twin tells its own files from those of other processes by their times.
class StrictTurnTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
    @older = make("older")
    @turn = Pando::Testing::Strict::Turn.new
  end

  def teardown = FileUtils.rm_rf(@folder)

  def test_files_of_its_turn_and_of_its_end_are_its_own
    made = make("turn")
    @turn.over
    @turn.leave

    refute @turn.foreign?(made)
    refute @turn.foreign?(make("end"))
  end

  def test_files_of_older_processes_are_not
    File.write(@older, "written again in the turn")
    @turn.over
    @turn.leave

    assert @turn.foreign?(@older)
  end

  def test_files_that_the_heir_makes_after_the_turn_are_not
    @turn.over
    made = make("heir")
    @turn.leave

    assert @turn.foreign?(made)
  end

  def test_files_that_the_heir_writes_to_after_the_turn_are_not
    made = make("both")
    @turn.over
    File.write(made, "of the heir")
    @turn.leave

    assert @turn.foreign?(made)
  end

  def test_without_a_time_of_birth_each_file_may_belong_to_another_process
    path = "/proc/self/stat"
    assert_raises(NotImplementedError) { File.birthtime(path) }
    @turn.over
    @turn.leave

    assert @turn.foreign?(path)
  end

  def test_a_file_that_does_not_exist_has_no_times
    @turn.over
    @turn.leave

    assert_raises(Errno::ENOENT) { @turn.foreign?(File.join(@folder, "none")) }
  end

  private

  def make(name) = File.join(@folder, name).tap { |path| File.write(path, "") }
end
