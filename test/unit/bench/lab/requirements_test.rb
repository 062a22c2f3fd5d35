# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/outcomes"
require "support/lab/requirements"

# Which figures are held against which.
class LabRequirementsTest < Minitest::Test
  def test_auto_is_held_against_puma_and_against_itself_without_reforking
    lines = lines(measured("pando-auto", pss: 40, cpu: 1.02), measured("pando-off", pss: 90, cpu: 1.0),
                  measured("puma", pss: 100, cpu: 2.0))

    assert_equal [0.4, true], line(lines, /as it comes/)
    assert_equal [0.51, true], line(lines, /CPU a request, of Puma's/)
    assert_equal [1.02, true], line(lines, /no reforking's/)
    assert_equal [1.02, false], line(lines, /second thousand/)
    assert_equal [nil, nil], line(lines, /beat it/)
  end

  def test_it_is_held_against_puma_with_jemalloc_and_pitchforks_best_list_with_it
    lines = lines(measured("pando-auto", pss: 40), measured("puma", pss: 100),
                  measured("puma", pss: 50, allocator: "jemalloc"), measured("pitchfork-list", pss: 10),
                  measured("pitchfork-list", pss: 45, allocator: "jemalloc"),
                  measured("pitchfork-wide", pss: 32, allocator: "jemalloc"))

    assert_equal [0.4, true], line(lines, /as it comes/)
    assert_equal [0.8, false], line(lines, /Puma's with jemalloc/)
    assert_equal [1.25, false], line(lines, /best list/)
    assert_equal "pitchfork-wide, jemalloc", lines.find { |each| each.name.match?(/best list/) }.words
  end

  def test_each_app_and_ruby_is_held_against_its_own
    runs = [["rails", "3.3.8", 40], ["rails", "4.0.5", 70], ["redmine", "4.0.5", 45]].flat_map do |app, ruby, pss|
      [measured("pando-auto", pss: pss, app: app, ruby: ruby), measured("puma", app: app, ruby: ruby)]
    end
    lines = lines(*runs)

    assert_equal [0.4, true], line(lines, /\Arails, Ruby 3.3.8: .* as it comes/)
    assert_equal [0.7, false], line(lines, /\Arails, Ruby 4.0.5: .* as it comes/)
    assert_equal [0.45, true], line(lines, /\Aredmine, Ruby 4.0.5: .* as it comes/)
  end

  def test_an_app_with_nothing_to_share_is_not_held_against_puma
    lines = lines(measured("pando-auto", app: "roda"), measured("puma", app: "roda"))

    assert_empty(lines.select { |line| line.name.include?("Puma") })
  end

  def test_a_list_beats_it_only_in_both
    one = lines(measured("pando-auto", pss: 40, cpu: 1.0), measured("pando-list", pss: 30, cpu: 1.1))
    both = lines(measured("pando-auto", pss: 40, cpu: 1.0), measured("pando-list", pss: 30, cpu: 0.9))

    assert_equal [0, true], line(one, /beat it/)
    assert_equal [1, false], line(both, /beat it/)
  end

  def test_a_figure_is_the_median_of_the_rounds_and_the_fewest_workers_are_the_worst
    autos = [30, 40, 80].map { |pss| measured("pando-auto", pss: pss, fewest: pss == 80 ? 3 : 4) }
    lines = lines(*autos, measured("puma", pss: 100))

    assert_equal [0.4, true], line(lines, /as it comes/)
    assert_equal [1, false], line(lines, /missing/)
  end

  def test_first_requests_are_pooled_over_the_rounds
    auto = Array.new(2) do |round|
      raw = { targets: [0] * 6, cpu: [90, 10, 30 + round, 20, 20, 10], first: [0, 1, 2], warm: [1, 2], next: [3, 4],
              steady: [5] }
      measured("pando-auto", raw: raw)
    end
    lines = lines(*auto)

    assert_equal [1.55, false], line(lines, /first 200/)
    words = lines.find { |each| each.name.match?(/first 200/) }.words
    assert_includes words, "4 requests, too few to say"
    assert_includes words, "of steady state's 3.1, with the app's warm-up 9.0"
  end

  def test_first_requests_are_held_against_those_of_the_same_round
    # The second round took twice as long, and had most of the first requests.
    auto = [[1, 1, 300], [2, 300, 1]].map do |pace, first, following|
      aged(first: 10 * pace, next: 10 * pace, times: [first, following])
    end

    assert_in_delta 1.0, first_line(*auto).value
  end

  def test_a_percentile_of_many_requests_passes_or_fails_by_its_interval
    alike = aged(first: 10, next: 10, times: [10_000, 10_000], processes: 5)
    slower = aged(first: 12, next: 10, times: [10_000, 10_000], processes: 5)

    line = first_line(alike)
    assert_equal ["pass", "1.00 (1.00 to 1.00)"], [line.verdict, line.figure]
    line = first_line(slower)
    assert_equal ["FAIL", "1.20 (1.20 to 1.20)"], [line.verdict, line.figure]
    assert_includes line.words, "10000 requests (10000 next ones, 5 processes)"
    refute_predicate requirements(slower), :met?
  end

  def test_too_few_requests_say_nothing_and_fail_no_check
    [[9_999, 10_000], [10_000, 9_999]].each do |times|
      few = aged(first: 12, next: 10, times: times, processes: 5)

      assert_equal "too few to say", first_line(few).verdict
      assert_predicate requirements(few), :met?
    end
  end

  def test_an_interval_on_both_sides_of_the_limit_says_nothing
    # One of three processes was slower.
    raw = raw([10] * 10_000, [10] * 10_000, processes: 3) { |process| process.zero? ? 2 : 1 }
    mixed = measured("pando-auto", raw: raw)
    line = first_line(mixed)

    assert_equal "too few to say", line.verdict
    assert_equal "2.00 (1.00 to 2.00)", line.figure
    assert_predicate requirements(mixed), :met?
  end

  def test_files_of_before_do_not_know_the_processes
    old = aged(first: 12, next: 10, times: [10_000, 10_000], processes: 5)
    old[:raw] = old[:raw].except(:process, :ancestors)

    line = first_line(old)
    assert_equal ["too few to say", "1.200"], [line.verdict, line.figure]
    assert_includes line.words, "processes not known"
  end

  def test_canaries_are_shown_apart
    # Of each generation, the first process is the canary.
    raw = raw([10] * 8, [10] * 8, processes: 4, ancestors: [1000, 1000, 2000, 2000]) do |process|
      process.even? ? 3 : 1
    end

    assert_includes first_line(measured("pando-auto", raw: raw)).words, "canaries 3.0, the others 1.0"
  end

  # In both workers without reforking, the 1,001st to 1,200th request took thrice as long.
  def test_the_apps_own_warm_up_is_shown_apart
    off = unforked(3_000) { |number| (1001..1200).cover?(number) ? 30 : 10 }
    auto = aged(first: 12, next: 10, times: [100, 100])

    assert_includes first_line(auto, measured("pando-off", raw: off)).words,
                    "workers without reforking, from the same ages on, 3.00 (3.00 to 3.00), 400 requests"
    refute_includes first_line(auto).words, "without reforking, from"
  end

  # Each request takes as many microseconds as its number in its process says.
  def test_the_requests_from_the_ages_of_all_rounds_on
    off = [4_000, 2_900].map { |size| measured("pando-off", raw: unforked(size) { |number| number }) }
    auto = [1000, 1400].map { |age| measured("pando-auto", raw: raw([10], [10], ancestors: [age])) }
    outcome = ->(runs) { Bench::Lab::Outcomes.new(runs).first }
    ratio = Bench::Lab::FirstRequests.new(outcome[auto]).of_next_without_reforking(outcome[off])

    first, second = ratio.sample.group_by { |request| request.process.first }.values
    assert_equal [*1001..1200, *1401..1600], first.map(&:cpu).first(400)
    assert_equal [*1001..1200, *1401..1450], second.map(&:cpu).first(250)
    assert_equal [1600, 500], ratio.baseline.group_by { |request| request.process.first }.values.map(&:size)
  end

  def test_failed_requests_are_missed
    line = ->(*runs) { lines(*runs).find { |each| each.name.match?(/failed requests/) } }
    none = line[measured("pando-auto", failures: 0), measured("puma", failures: 7)]
    some = [0, 0, 1].map { |failures| measured("pando-auto", failures: failures) }

    assert_equal [0, "pass", "puma: 7"], [none.value, none.verdict, none.words]
    assert_equal [1, "FAIL"], [line[*some].value, line[*some].verdict]
    refute_predicate requirements(*some), :met?
    assert_equal 3, line[measured("pando-auto", app: "roda", failures: 3)].value
  end

  def test_a_pando_with_other_settings_is_another_one
    plain, threads = [["log_format :json"], ["log_format :json", "threads 2"]].map do |settings|
      [measured("pando-auto", pss: settings.size * 20, settings: settings), measured("pando-off", settings: settings)]
    end
    found = lines(*plain, *threads, measured("puma")).select { |each| each.name.include?("as it comes") }

    assert_equal [0.2, 0.4], found.map(&:value).sort
    assert_equal(1, found.count { |each| each.name.include?("threads 2") })
  end

  def test_first_requests_beside_the_same_ones_to_puma
    auto = measured("pando-auto", raw: { targets: [0, 0, 0], cpu: [10, 30, 90], first: [0, 1], warm: [], steady: [] })
    puma = measured("puma", raw: { targets: [0, 0, 0], cpu: [20, 40, 10] })
    words = lines(auto, puma).find { |each| each.name.match?(/first 200/) }.words

    assert_includes words, "of the same requests without reforking -, to Puma 0.75"
  end

  def test_loads_of_another_size_are_not_compared
    assert_equal [nil, nil], line(lines(measured("pando-auto"), measured("puma", requests: 8000)), /as it comes/)
  end

  private

  def requirements(*runs) = Bench::Lab::Requirements.new(Bench::Lab::Outcomes.new(runs))
  def lines(*runs) = requirements(*runs).lines
  def first_line(*runs) = lines(*runs).find { |each| each.name.match?(/first 200/) }

  def line(lines, pattern)
    found = lines.find { |each| each.name.match?(pattern) }
    [found.value&.round(3), found.met?]
  end

  # Two workers without reforking with so many requests in all.
  def unforked(size)
    cpu = Array.new(size) { |place| yield (place / 2) + 1 }
    { targets: [0] * size, cpu: cpu, process: cpu.each_index.map { |place| place % 2 }, ancestors: [0, 0] }
  end

  # A run with so many first and next requests, all to one target.
  def aged(first:, next:, times:, **options)
    following = binding.local_variable_get(:next)
    measured("pando-auto", raw: raw([first] * times.first, [following] * times.last, **options))
  end

  # Each process serves its share of first and then of next requests; the block says how much slower its first ones are.
  def raw(first, following, processes: 1, ancestors: [1000] * processes)
    firsts = first.each_with_index.map { |cpu, index| (block_given? ? yield(index % processes) : 1) * cpu }
    places = (0...(first.size + following.size)).to_a
    { targets: [0] * places.size, cpu: firsts + following, process: places.map { |place| place % processes },
      ancestors: ancestors, first: places.first(first.size), warm: places.first(first.size),
      next: places.last(following.size), steady: [] }
  end

  def measured(server, pss: 100, cpu: 1.0, fewest: 4, **more)
    { app: "rails", server: server, label: server, tag: nil, allocator: "default", allocator_found: "glibc", yjit: true,
      workers: 4, requests: 40_000, memory: { pss: { average: pss } }, cpu: { overall: cpu, later: cpu },
      fewest_workers: fewest, refork_places: [], **more }
  end
end
