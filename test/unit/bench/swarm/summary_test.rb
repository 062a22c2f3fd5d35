# frozen_string_literal: true

require_relative "../bench_helper"
require "support/swarm/meter"
require "support/swarm/report"
require "support/swarm/summary"

# The figures, and which of them are held against which.
class SwarmSummaryTest < Minitest::Test
  MIB = 1024 * 1024
  NEW = 9
  OLD = 1

  def test_memory_counts_from_the_second_quarter_on_and_jobs_per_cpu_second_too
    memory = summary(pss: [900, 400, 200, 200, 200]).fetch(:memory)

    assert_in_delta 233.3, memory[:pss][:average] / MIB, 0.1
    assert_equal 200 * MIB, memory[:pss][:final]
    assert_equal([10.0, 10.0], summary.fetch(:jobs_per_cpu_second).values_at(:all, :later).map { |rate| rate.round(3) })
  end

  def test_a_new_nodes_jobs_are_held_against_those_of_the_same_class_beside_it
    kills = kills { |number| number <= 20 ? 2.0 : 1.05 }

    assert_in_delta 1.05, kills[:ratio]
    assert_in_delta 2.0, kills[:spans][:first][:ratio]
    assert_equal 15, kills[:warm_after] # the window after that has more warm jobs than others
    assert_in_delta 1.6, kills[:seconds][:warm], 0.001
  end

  def test_a_time_in_which_all_are_slow_says_nothing_about_the_new_node
    kills = kills(meanwhile: 2.0) { 2.1 }

    assert_in_delta 1.05, kills[:ratio]
    assert_equal 0, kills[:warm_after]
  end

  def test_a_node_that_stays_cold_is_never_warm
    kills = kills { 3.0 }

    assert_nil kills[:warm_after]
    assert_nil kills[:seconds][:warm]
    assert_in_delta 3.0, kills[:ratio]
  end

  def test_the_report_says_what_is_kept
    report = report(pando: 50, other: 100, ratio: 1.1)

    assert_predicate report, :kept?
    assert_equal 3, report.targets.size
    assert_includes report.to_s, "kept: PSS at the end is 0.50"
  end

  def test_the_report_says_what_is_missed
    refute_predicate report(pando: 51, other: 100, ratio: 1.0), :kept?
    refute_predicate report(pando: 10, other: 100, ratio: 1.11), :kept?
  end

  private

  def summary(pss: [1] * 5, done: [job(1)] * 400, kills: [])
    samples = pss.each_with_index.map do |mib, index|
      { jobs: index * 100, cpu: index * 10.0, at: index.to_f, pss: mib * MIB, uss: 0, worker: 0, worker_uss: 0 }
    end
    Bench::Swarm::Summary.new(samples: samples, done: done, total: 400, kills: kills, nodes: 4).to_h
  end

  # Jobs of two classes, one of which takes ten times as long; those of the new node take a multiple of it.
  def kills(meanwhile: 1.0)
    old = (1..2200).map { |number| number > 2000 ? job(number, times: meanwhile, at: 1.0) : job(number, at: -1.0) }
    new = (1..100).map { |number| job(number, pid: NEW, times: yield(number), at: number / 10.0) }
    Bench::Swarm::Warmth.new(old + new, [{ pid: NEW, at: 0.0 }]).to_h
  end

  def job(number, pid: OLD, times: 1.0, at: 0.0)
    Bench::Swarm::Meter::Done.new(pid, number, 0, number % 2, false, times * (number.even? ? 0.001 : 0.01), at)
  end

  def report(pando:, other:, ratio:)
    figures = { "pando-auto" => pando, "preloaded" => other }.transform_values do |mib|
      summary(pss: [mib] * 5).merge(reforks: 1).tap { |all| all[:kills][:ratio] = ratio }
    end
    Bench::Swarm::Report.new(figures)
  end
end
