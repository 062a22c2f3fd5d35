# frozen_string_literal: true

require "test_helper"
require_relative "support/auto_figures"

# `refork :auto` when hardly any requests come.
class ReforkAutoIdleTest < Minitest::Test
  include ReforkSupport::AutoFigures

  def test_an_idle_server_gives_back_what_its_workers_have_written_to
    settle
    look(0, 100)
    look(1, 200)
    look(1000, 200)
    look(1500, 200)

    assert_equal :wait, act(1500, 200, seconds: 209.0)
    assert_match(/\Athere have been hardly any requests for 61 s, and it saves 100.0 MiB\z/,
                 look(1500, 200, seconds: 211.0).reason)
    refork
    look(0, 110, seconds: 0.0)
    assert_equal [:wait], (1..100).map { |minutes| act(0, 110, seconds: minutes * 60.0) }.uniq
  end

  # Memory was measured late, or has grown between two measurements.
  def test_an_idle_server_goes_by_what_its_workers_have_for_themselves_where_that_is_more
    settle
    look(1000, 200)
    @private = 150 * MIB # and 8 MiB of each it will always have
    idle = look(1000, 200, seconds: 200.0)

    assert_equal "there have been hardly any requests for 100 s, and it saves 118.0 MiB", idle.reason
  end

  # With little traffic one worker serves all requests.
  def test_only_what_has_been_written_to_counts
    assert_equal :wait, idle(1.0, 5)
    assert_equal :refork, idle(16.0, 80)
  end

  # @param warmed [Float] of 16 workers @param grown [Integer] MiB of all together
  def idle(warmed, grown)
    @auto = nil
    @generation = @reforks = 0
    settle
    look(0, 100, workers: 16)
    look(1, 100 + grown, workers: 16, warmed: warmed)
    look(1000, 100 + grown, workers: 16, warmed: warmed)
    act(1000, 100 + grown, workers: 16, warmed: warmed, seconds: 200.0)
  end

  def test_health_checks_are_as_good_as_silence
    settle
    look(0, 100)
    look(1, 200)
    look(1000, 200)

    assert_includes((1..100).map { |tick| act(1000 + (tick / 50.0), 200, seconds: 100.0 + tick) }, :refork)
  end

  # Ages are averages, and the new workers are young.
  def test_more_workers_are_not_silence
    settle
    look(0, 100)
    (1..100).each { |second| look(second * 10, 200, seconds: second.to_f) }
    @private = 150 * MIB
    more = (101..200).map { |second| act(500 + ((second - 100) * 5), 200, seconds: second.to_f, workers: 8) }

    refute_includes(more, :refork)
  end

  def test_workers_that_have_hardly_served_wait_longer
    settle
    look(0, 100)
    look(1, 180)
    look(20, 180)

    assert_equal %i[wait refork], [act(20, 180, seconds: 500.0), act(20, 180, seconds: 650.0)]
  end
end
