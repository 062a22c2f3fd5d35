# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/options"

# What a command line makes of servers, allocators and time.
class LabOptionsTest < Minitest::Test
  def test_a_server_may_name_its_allocator_and_is_measured_beside_the_others
    variants = options("--servers", "puma,puma+jemalloc,pando-auto").variants

    assert_equal [%w[puma default], %w[puma jemalloc], %w[pando-auto default]],
                 pairs(variants)
    assert(variants.each_cons(2).all? { |one, other| one.rivals?(other) })
    assert_equal 3, variants.map(&:id).uniq.size
  end

  def test_allocators_of_all_servers_measure_none_twice
    options = options("--servers", "puma,puma+jemalloc", "--allocators", "default,jemalloc")

    assert_equal [%w[puma default], %w[puma jemalloc]], pairs(options.variants)
  end

  def test_an_unknown_server_is_refused
    _out, err = capture_io { assert_raises(SystemExit) { options("--servers", "puma+tcmalloc") } }

    assert_includes err, "puma+tcmalloc"
  end

  def test_the_table_has_what_pando_is_held_against
    options = options("--table")

    assert_predicate options, :together?
    assert_equal Bench::Lab::Options::TABLE.size, options.variants.size
    assert_equal(Bench::Lab::Servers::HAND_LISTS,
                 options.variants.select { |each| each.server.start_with?("pitchfork") && each.allocator == "jemalloc" }
                                 .map(&:server))
  end

  def test_the_time_scale_reaches_pando_alone_and_names_what_was_measured
    pando, puma = options("--servers", "pando-auto,puma", "--time-scale", "60").variants
    plain, = options("--servers", "pando-auto").variants

    passed_on = [pando, puma, plain].map { |each| each.environment["PANDO_TIME_SCALE"] }
    assert_equal ["60", nil, nil], passed_on
    refute_equal pando.id, plain.id
    assert_equal ["Pando, auto, time scale 60", "Puma, preload", "Pando, auto"], [pando, puma, plain].map(&:label)
  end

  def test_pando_is_measured_with_its_default_canary
    assert_empty(options.settings.grep(/canary|refork/))
  end

  def test_minutes_are_for_servers_that_take_turns
    _out, err = capture_io { assert_raises(SystemExit) { options("--minutes", "5") } }

    assert_includes err, "--minutes is for --together"
    assert_equal [5, 5], [options("--minutes", "5", "--together"), options("--table", "--minutes", "5")].map(&:minutes)
  end

  def test_each_round_has_other_requests_and_all_servers_of_a_round_the_same
    variants = options("--servers", "puma,pando-auto", "--repeat", "3", "--seed", "5").variants

    assert_equal({ "puma" => [5, 6, 7], "pando-auto" => [5, 6, 7] },
                 variants.group_by(&:server).transform_values { |all| all.map(&:traffic_seed).sort })
  end

  private

  def pairs(variants) = variants.map { |each| [each.server, each.allocator] }
  def options(*arguments) = Bench::Lab::Options.new(arguments)
end
