# frozen_string_literal: true

require "test_helper"

$LOAD_PATH.unshift(File.expand_path("../../../bench", __dir__))
require "support/refork_curves"
require "support/refork_simulation"

# `refork :auto` on recorded curves, as bench/refork-sim prints it.
class ReforkSimulationTest < Minitest::Test
  LISTS = [{ after: [50, 100, 1000] }, { after: [*Array.new(20) { |step| (50 * (1.5**step)).round }, false] },
           { after: [*Array.new(11) { |step| 50 << step }, false] }].freeze

  def simulation(app, **options) = Bench::ReforkSimulation.new(Bench::ReforkCurves.load(app), **options)
  def run_with(app, setting, **options) = simulation(app, **options).run(Pando::Refork.policy(setting))

  def test_constant_caches_as_little_memory_as_with_any_list
    auto = run_with("constants", :auto)

    LISTS.each { |list| assert_operator auto.average, :<=, run_with("constants", list).average * 1.05, list }
    assert_operator auto.average, :<, run_with("constants", false).average / 2
  end

  def test_rails_nearly_as_little_memory_as_with_any_list_for_fewer_reforks
    auto = run_with("rails", :auto)

    LISTS.each do |list|
      other = run_with("rails", list)
      assert_operator auto.average, :<=, other.average * 1.1, list
      assert_operator auto.reforks.size, :<, other.reforks.size, list
    end
  end

  # Whatever the traffic, the Ruby and the JIT.
  def test_memory_and_cpu_time_together_come_near_the_best_schedule
    rules = Pando::Refork::Auto::Rules.for
    %w[constants rails roda lab-rails-3.4 lab-rails-4.0].product([0.5, 5.0, 50.0]).each do |app, rate|
      simulation = simulation(app, rate: rate)
      toll = simulation.toll(simulation.run(Pando::Refork.policy(:auto)), rules.rate)

      assert_operator toll, :<=, simulation.least_toll(rules.rate, rules.share) * 1.2, "#{app}, #{rate} a second"
    end
  end

  def test_the_best_schedule_is_no_worse_than_any_list
    rules = Pando::Refork::Auto::Rules.for
    simulation = simulation("constants")
    least = simulation.least_toll(rules.rate, 1.0)

    LISTS.each do |list|
      assert_operator least, :<=, simulation.toll(simulation.run(Pando::Refork.policy(list)), rules.rate) * 1.001
    end
  end

  def test_a_small_app_costs_no_more_than_its_share
    auto = run_with("roda", :auto, requests: 60_000)

    refute_empty auto.reforks
    assert_operator auto.cpu, :<=, run_with("roda", false, requests: 60_000).cpu * 1.08
  end

  # Figures of memory are off by two percent, those of CPU time by one.
  def test_it_does_not_fall_for_noise
    random = Random.new(7)
    simulation = simulation("roda", requests: 30_000)
    noisy = simulation.run(Pando::Refork.policy(:auto)) do |vitals|
      vitals.pss *= 1 + ((random.rand - 0.5) * 0.04)
      vitals.cpu *= 1 + ((random.rand - 0.5) * 0.02)
    end
    quiet = simulation.run(Pando::Refork.policy(:auto))
    rate = Pando::Refork::Auto::Rules.for.rate

    assert_operator simulation.toll(noisy, rate), :<=, simulation.toll(quiet, rate) * 1.02
  end

  def test_curves_are_straight_between_what_was_recorded
    curves = Bench::ReforkCurves.new(["0,0,100,0.0", "0,10,200,1.0", "9,0,50,0.0", "9,10,60,0.5"])

    assert_equal [150.0, 200.0, 50.0, 60.0], [curves.pss(0, 5), curves.pss(0, 99), curves.pss(9, 0), curves.pss(99, 10)]
    assert_in_delta 75.0, curves.pss(Math.sqrt(10) - 1, 0)
    assert_in_delta 2.0, curves.cpu(0, 20)
  end
end
