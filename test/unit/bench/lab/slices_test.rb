# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/slices"
require "support/lab/watch"

# The CPU time of a server while it has its turn and while others have theirs.
class LabSlicesTest < Minitest::Test
  FakeClient = Struct.new(:sent, :failures, :work) do
    def run(count)
      sent.concat([:sent] * count)
      work.call(count)
    end
  end

  FakeGroup = Struct.new(:cpu)

  FakeWatch = Struct.new(:workers) do
    def look = Bench::Lab::Watch::Sight.new(0.0, workers, [], [0])
  end

  def setup
    @time = 0.0
    @group = FakeGroup.new(7.0) # of its boot
    @watch = FakeWatch.new([Process.pid])
    @client = FakeClient.new([], [], ->(count) { spend(1.0, cpu: count * 0.25) })
  end

  def test_what_the_others_turns_take_counts_and_is_added_up_apart
    slices = slices(size: 4)
    slices.run(8, others)

    assert_equal([[0, 0.0], [4, 4.0], [8, 8.0]], slices.samples.map { |sample| sample.values_at(:requests, :cpu) })
    assert_equal({ cpu: 6.0, seconds: 20.0 }, slices.idle)
  end

  def test_without_others_no_time_is_idle
    slices = slices(size: 4)
    slices.run(8, -> { false })

    assert_equal({ cpu: 0.0, seconds: 0.0 }, slices.idle)
  end

  def test_it_ends_when_the_others_turn_says_so
    slices = slices(size: 4)
    slices.run(8, -> { @client.sent.any? })

    assert_equal 4, @client.sent.size
  end

  def test_a_server_without_processes_is_gone
    @client.work = ->(_) { @watch.workers = [] }
    error = assert_raises(Bench::Lab::Slices::Gone) { slices(size: 30).run(60, -> { false }) }

    assert_includes error.message, "after 30 requests"
  end

  def test_a_server_that_fails_a_whole_slice_is_gone
    @client.work = ->(count) { @client.failures.concat(["/: Errno::ECONNREFUSED"] * count) }
    error = assert_raises(Bench::Lab::Slices::Gone) { slices(size: 30).run(60, -> { false }) }

    assert_includes error.message, "/: Errno::ECONNREFUSED"
    assert_equal 30, @client.sent.size
  end

  def test_a_server_that_fails_some_requests_goes_on
    @client.work = ->(count) { @client.failures.concat(["/: no"] * (count - 1)) }
    slices(size: 30).run(60, -> { false })

    assert_equal 60, @client.sent.size
  end

  def test_a_server_that_answers_nobody_is_gone
    @client.work = ->(_) { raise Bench::Lab::Client::Stuck }

    assert_raises(Bench::Lab::Slices::Gone) { slices(size: 30).run(60, -> { false }) }
  end

  private

  def slices(size:) = Bench::Lab::Slices.new(@client, watch: @watch, group: @group, size: size, clock: -> { @time })

  # Two turns of ten seconds, in each of which the server takes three of CPU time.
  def others
    lambda do
      spend(10.0, cpu: 3.0)
      false
    end
  end

  def spend(seconds, cpu:)
    @time += seconds
    @group.cpu += cpu
  end
end
