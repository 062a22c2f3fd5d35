# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/traffic"

class LabTrafficTest < Minitest::Test
  TARGETS = Array.new(20) { |index| ["GET", "/#{index}/%d"] }.freeze
  COUNT = 5000

  def test_the_same_seed_makes_the_same_requests
    assert_equal requests(seed: 3), requests(seed: 3)
    refute_equal requests(seed: 3), requests(seed: 4)
  end

  def test_the_most_popular_target_is_asked_for_as_zipf_has_it
    counts = requests.map(&:first).tally.values.sort.reverse
    sum = (1..TARGETS.size).sum { |rank| 1.0 / rank }

    assert_equal TARGETS.size, counts.size
    assert_in_delta COUNT / sum, counts.first, COUNT * 0.03
    assert_in_delta 2.0, counts[0] / counts[1].to_f, 0.4
  end

  def test_writes_have_their_share_and_every_path_names_a_row
    writes = [["PATCH", "/change/%d"]]
    made = requests(writes: writes, share: 0.1)

    assert_in_delta 0.1, made.count { |target, _| target == TARGETS.size } / COUNT.to_f, 0.03
    assert(made.all? { |_, path| path.match?(%r{\A/\w+/([1-9]|[1-5]\d|60)\z}) })
  end

  private

  def requests(**options)
    traffic = Bench::Lab::Traffic.new(TARGETS, **options)
    Array.new(COUNT) { traffic.next }
  end
end
