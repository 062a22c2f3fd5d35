# frozen_string_literal: true

require_relative "../bench_helper"
require "tmpdir"
require "support/lab/laboratory"
require "support/lab/options"

# What happens to the others when a server fails.
class LabLaboratoryTest < Minitest::Test
  def setup = @folder = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@folder)

  def test_a_server_that_fails_ends_its_own_measurement_alone
    turns = Hash.new(0)
    run = lambda do |variant, pause:|
      3.times do
        pause.call
        turns[variant.server] += 1
        raise Bench::Lab::Run::Failed, "it does not serve any more" if variant.server == "puma"
      end
      { requests: 3 }
    end
    _out, err = capture_io { laboratory(run, "--together", "--servers", "pando-auto,puma,pitchfork-list").measure_all }

    assert_equal({ "pando-auto" => 3, "pitchfork-list" => 3, "puma" => 1 }, turns.sort.to_h)
    assert_equal %w[pando-auto pitchfork-list], measured
    assert_match(/^rails-puma-.*: it does not serve any more$/, err)
  end

  def test_what_was_measured_is_not_measured_again_unless_its_settings_differ
    runs = []
    run = ->(variant, **) { { requests: (runs << variant.id).size } }
    [[], [], ["--seed", "2"], ["--seed", "2"], ["--again"]].each do |arguments|
      capture_io { laboratory(run, "--servers", "pando-auto", *arguments).measure_all }
    end

    assert_equal 3, runs.size
    assert_equal [runs[0]] * 2, [runs[0], runs[2]]
  end

  private

  def laboratory(run, *arguments)
    Bench::Lab::Laboratory.new(Bench::Lab::Options.new([*arguments, "--results", @folder]), run: run)
  end

  def measured = Bench::Lab::Archive.new(File.join(@folder, "runs")).runs.map { |run| run[:server] }.sort
end
