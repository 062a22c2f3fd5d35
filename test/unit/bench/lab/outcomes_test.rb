# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/outcomes"
require "support/lab/pictures"

# Which runs are rounds of one outcome, and what is made of them.
class LabOutcomesTest < Minitest::Test
  MIB = 1024 * 1024

  def test_a_tag_and_a_time_scale_are_pandos_alone
    outcomes = outcomes(measured("puma", round: 1), measured("puma", tag: "new", round: 2),
                        measured("puma", time_scale: 60, round: 3), measured("pando-auto"),
                        measured("pando-auto", tag: "new"), measured("pando-auto", time_scale: 60))

    assert_equal [["pando-auto", 1], ["pando-auto", 1], ["pando-auto", 1], ["puma", 3]],
                 outcomes.map { |each| [each.server, each.runs.size] }.sort
  end

  def test_runs_with_other_settings_are_no_rounds_of_one_another
    runs = [{}, { workers: 8, requests: 80_000 }, { clients: 8 }, { seed: 2 }]

    assert_equal 4, outcomes(*runs.map { |more| measured("puma", **more) }).map(&:conditions).uniq.size
    ours = [{}, { settings: ["threads 2"] }, { checkout: "/other" }]
    pandos, pumas = %w[pando-auto puma].map { |server| outcomes(*ours.map { |more| measured(server, **more) }) }
    assert_equal([1, 1, 1], pandos.map { |each| each.runs.size })
    assert_equal([3], pumas.map { |each| each.runs.size })
  end

  def test_pictures_of_other_conditions_have_other_names
    files = [{}, { workers: 8, requests: 80_000 }, { clients: 8 }, { seed: 2 }].map do |more|
      outcomes(measured("puma", **more)).first.conditions.file
    end

    assert_equal "rails-ruby4.0.5-yjit-10000", files.first
    assert_equal 4, files.uniq.size
  end

  def test_a_moment_without_workers_is_left_out_of_the_pictures
    curve = [4, nil, 4].each_with_index.map do |mib, index|
      { requests: index * 4, cpu: index.to_f, pss: 8 * MIB, worker_uss: mib && (mib * MIB) }
    end
    pictures = Bench::Lab::Pictures.new(outcomes(measured("puma", curve: curve, refork_places: []))).all

    lines = %w[uss pss].map { |kind| pictures.find { |name, _| name.end_with?(kind) }.last[/points="([^"]*)"/, 1] }
    assert_equal([2, 3], lines.map { |points| points.split.size })
  end

  def test_failed_requests_are_added_up
    runs = [0, 0, 7].map { |failures| measured("puma", failures: failures) }

    assert_equal 7, outcomes(*runs).first.failures
  end

  def test_a_percentile_of_a_small_baseline_is_left_open
    small, large = [999, 1000].map do |steady|
      measured("pando-auto", first: { all: { p99_ratio: 3.0, steady: steady } })
    end

    assert_nil outcomes(small).first.first_p99_ratio(:all)
    assert_in_delta 3.0, outcomes(large).first.first_p99_ratio(:all)
    assert_in_delta 3.0, outcomes(small, large).first.first_p99_ratio(:all)
  end

  private

  def outcomes(*runs) = Bench::Lab::Outcomes.new(runs)

  def measured(server, **more)
    { app: "rails", server: server, label: server, tag: nil, time_scale: 1, allocator: "default",
      allocator_found: "glibc", ruby: "4.0.5", yjit: true, workers: 4, clients: 4, seed: 1, requests: 40_000,
      cpu: { overall: 1.0 }, **more }
  end
end
