# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "pando/refork/lineage"
require "support/upgrade_record"

# What a line of molds hands down: a leak, or an app that warms up.
class LineageTest < Minitest::Test
  Lineage = Pando::Refork::Lineage
  MIB = 1024.0**2
  # Requests from each mold to the next: a short list, the usual one, and doubling as `refork :auto` does.
  SCHEDULES = { short: ->(_) { 100 }, even: ->(_) { 500 }, list: ->(index) { [500, 750][index] || 1000 },
                doubling: ->(index) { index < 6 ? 50 * (2**index) : 900 } }.freeze
  LONG = 20_000
  SEEDS = 8

  def setup
    @random = Random.new(1)
  end

  # A line of molds, each of the size in MiB that the block says of the requests that have been served by then.
  # @param noise [Float] a share of the size, the standard deviation
  # @return [Lineage] when a leak is known, or all is served
  def line(steps, upto: LONG, noise: 0.0)
    lineage = Lineage.new(1.0).add(0, nil, 0, bytes(yield(0), noise))
    requests = 0
    (1..).each do |number|
      requests += step = (steps[number - 1] * @random.rand(0.9..1.2)).to_i
      lineage.add(number, number - 1, step, bytes(yield(requests), noise))
      return lineage if lineage.leak || requests >= upto
    end
  end

  def bytes(mebibytes, noise) = (mebibytes * MIB * (1 + (noise * gauss))).to_i
  def gauss = Math.sqrt(-2 * Math.log(1 - @random.rand)) * Math.cos(2 * Math::PI * @random.rand)

  def each_line(noise, **options, &)
    SCHEDULES.each do |name, steps|
      SEEDS.times { |seed| yield line(steps, noise: noise, **options, &@curve), "#{name}, #{noise}, #{seed}" }
    end
  end

  def assert_none(noises = [0.0, 0.05], &curve)
    @curve = curve
    noises.each { |noise| each_line(noise) { |lineage, which| assert_nil lineage.leak, which } }
  end

  # It warms up, and each request leaves a quarter of a mebibyte.
  def test_a_leak_is_found_after_warming_up
    @curve = ->(requests) { 150 + (60 * (1 - Math.exp(-requests / 150.0))) + (0.25 * requests) }
    each_line(0.02, upto: 12_000) do |lineage, which|
      assert lineage.leak, which
      assert_in_delta 0.25, lineage.leak.rate / MIB, 0.07, which
    end
  end

  def test_what_is_known_of_a_leak
    leak = line(SCHEDULES[:short]) { |requests| 100 + (0.25 * requests) }.leak

    assert_equal 0.25 * MIB, leak.rate
    assert_in_delta 150 * MIB, leak.before, 1
    assert_equal [200, leak.bytes - leak.before], [leak.after, leak.grown]
    assert_in_delta (100 + (0.25 * leak.requests)) * MIB, leak.bytes, 1
  end

  def test_it_is_to_be_seen_twice
    lineage = Lineage.new
    [0, 200, 400, 600, 800].each.with_index { |requests, number| add(lineage, number, requests) }
    assert_nil lineage.leak

    add(lineage, 5, 900)
    assert_nil lineage.leak, "that is too soon after"

    add(lineage, 6, 1000)
    assert lineage.leak
  end

  def test_what_was_chance_is_forgotten
    lineage = Lineage.new
    [0, 200, 400, 600, 800].each.with_index { |requests, number| add(lineage, number, requests) }
    lineage.add(5, 4, 50, 100 * MIB)
    add(lineage, 6, 1000)

    assert_nil lineage.leak
  end

  # Caches that fill up with what is asked for now and then.
  def test_growth_by_the_logarithm_of_requests_is_none
    assert_none { |requests| 100 + (20 * Math.log(1 + requests)) }
    assert_none { |requests| 5 + (100 * Math.log(1 + (requests / 150.0))) }
    assert_none([0.0]) { |requests| 50 + (5 * Math.sqrt(requests)) }
  end

  def test_noise_is_none = assert_none { 150 }
  def test_a_jump_is_none = assert_none([0.0, 0.02]) { |requests| requests < 3000 ? 150 : 300 }

  # Nobody knows how memory has grown between two molds.
  def test_a_jump_while_no_mold_was_born_is_none
    lineage = Lineage.new
    { 0 => 100, 200 => 100, 210 => 100, 220 => 100, 1600 => 300, 1700 => 300, 1770 => 300, 1790 => 300 }
      .each.with_index do |(requests, size), number|
        lineage.add(number, number - 1, requests - lineage.requests, size * MIB)
        assert_nil lineage.leak
      end
  end

  def test_what_has_warmed_up_slowly_is_none
    assert_none([0.0, 0.02]) { |requests| 120 + (100 * (1 - Math.exp(-requests / 2000.0))) }
  end

  # However long it goes on, it is not worth a boot.
  def test_a_little_is_none = assert_none([0.0]) { |requests| 10 + (0.0006 * requests) }

  # It had no time to grow by half of what there was.
  def test_a_leak_that_has_not_come_to_much_is_none
    assert_nil line(SCHEDULES[:even], upto: 2000) { |requests| 200 + (0.02 * requests) }.leak
  end

  def test_a_leak_that_has_ended_is_none
    lineage = line(SCHEDULES[:short]) { |requests| 100 + (0.25 * requests) }
    size = lineage.size
    10.times { |count| lineage.add(100 + count, lineage.number, 300, size) }

    assert_nil lineage.leak
  end

  # No mold is born any more.
  def test_traffic_that_stops_changes_nothing
    lineage = line(SCHEDULES[:short]) { |requests| 100 + (0.25 * requests) }

    assert_equal lineage.leak, lineage.leak
    assert_nil line(SCHEDULES[:short], upto: 700) { |requests| 100 + (0.25 * requests) }.leak
  end

  # One that replaces a dead mold is forked from a worker of an older generation.
  def test_ancestors_are_those_of_the_worker
    lineage = Lineage.new.add(0, nil, 0, 100).add(1, 0, 300, 200).add(2, 1, 10, 210)
    assert_equal 310, lineage.requests

    assert_equal 700, lineage.add(3, 1, 400, 300).requests
    assert_equal 320, lineage.add(4, 1, 20, 220).requests
    assert_equal 4, lineage.number
  end

  def test_what_came_to_nothing_is_forgotten
    lineage = Lineage.new.add(0, nil, 0, 100).add(1, 0, 300, 200).add(2, 1, 300, 300)
    lineage.forget_after(1)

    assert_equal [1, 300, 200], [lineage.number, lineage.requests, lineage.size]
  end

  # An older Pando did not look.
  def test_a_line_of_which_the_beginning_is_not_known
    lineage = Lineage.new.add(8, 7, 100, 200)

    assert_equal 100, lineage.requests
    assert_in_delta Lineage::GUESS, lineage.price
  end

  # Boot 2 s; the first 200 requests of all took 20 ms each, the others 10.
  def test_the_price_is_the_boot_and_the_second_warm_up
    lineage = Lineage.new(2.0)
    (0..10).each { |number| add(lineage, number, number * 100, cpu: (number * 3.0) + ([number, 2].min * 3)) }

    assert_in_delta 8.0, lineage.price
  end

  # 200 of 350 MiB come back, which are a third of what all take: one percent of CPU time for three of memory.
  def test_it_pays_when_it_saves_three_times_its_price
    lineage = Lineage.new(10.0)
    (0..10).each { |number| add(lineage, number, number * 100) }
    assert_equal 200 * MIB, lineage.leak.grown

    refute lineage.pays?(600 * MIB, 89.0)
    assert lineage.pays?(600 * MIB, 90.0)
    refute lineage.pays?(0, 90.0), "nothing could be measured"
    refute Lineage.new.pays?(600 * MIB, 1000.0)
  end

  def test_it_remembers_a_bounded_number_of_births
    lineage = Lineage.new
    (0..500).each { |number| add(lineage, number, number * 100) }

    assert_equal [Lineage::MOST], lineage.serialized_fields.values.grep(Array).map(&:size).uniq
    assert_equal 0.25 * MIB, lineage.leak.rate
  end

  def test_it_outlives_an_upgrade
    lineage = line(SCHEDULES[:short]) { |requests| 100 + (0.25 * requests) }
    [lineage, Lineage.new(3.0)].each do |one|
      taken = carried(one)

      assert_equal one.serialized_fields, taken.serialized_fields
      assert_equal [one.leak, one.price], [taken.leak, taken.price]
    end
  end

  def test_a_state_without_it_is_that_of_an_older_pando
    record = Pando::Cluster::Upgrade::Record.new("generations", {})

    assert_equal Lineage.new.serialized_fields, Lineage.new.take_up(record, "line.").serialized_fields
  end

  private

  # A quarter of a mebibyte a request, and four workers that serve alike.
  def add(lineage, number, requests, cpu: 0.0)
    step = requests - lineage.requests
    lineage.add(number, (number - 1 if number.positive?), step, ((100 + (0.25 * requests)) * MIB).to_i,
                cpu: cpu, served: requests * 3)
  end

  def carried(lineage) = Lineage.new.take_up(Support::UpgradeRecord.of(lineage))
end
