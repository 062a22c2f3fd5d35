# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/cluster/monitor"
require_relative "support/clock"

class ClusterRestartFileTest < Minitest::Test
  include ClusterSupport::Clock

  Options = Struct.new(:restart_file)
  RestartFile = Pando::Cluster::RestartFile

  def setup
    @folder = Dir.mktmpdir("pando-restart")
    @path = File.join(@folder, "restart.txt")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_touching_the_file_asks_for_a_reload_once
    file = RestartFile.new(Options.new(@path))

    assert_equal [[], [@path], []], [look(file), touch { look(file) }, look(file)]
    assert_equal([@path], touch { look(file) })
  end

  def test_a_file_from_before_the_start_asks_for_nothing
    assert_empty(touch { look(RestartFile.new(Options.new(@path))) })
  end

  def test_it_looks_once_a_second
    file = RestartFile.new(Options.new(@path))

    assert_in_delta now + 1.0, file.due
    touch { assert_empty collect(file) }
    elapse(1.0)

    assert_equal [@path], collect(file)
  end

  def test_without_a_path_there_is_nothing_to_look_at
    file = RestartFile.new(Options.new(nil))

    assert_nil file.due
    assert_empty look(file)
  end

  private

  def look(file)
    elapse(1.0)
    collect(file)
  end

  def collect(file)
    found = []
    file.proceed { |path| found << path }
    found
  end

  def touch
    @touched = (@touched || 1_000_000) + 1
    File.write(@path, "")
    File.utime(@touched, @touched, @path)
    yield
  end
end
