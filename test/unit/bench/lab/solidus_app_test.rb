# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/apps"

# What is asked of the shop.
class LabSolidusAppTest < Minitest::Test
  MIX = Bench::Solidus::Traffic
  ALL = (MIX.targets + MIX.writes).freeze

  def test_the_traffic_asks_for_100_to_300_routes_each_once
    assert_includes 100..300, ALL.size
    assert_equal ALL.uniq, ALL
  end

  def test_a_path_names_one_row_at_most_for_only_one_gets_a_number
    assert(ALL.all? { |_verb, path| path.scan("%d").size <= 1 })
    assert(ALL.none? { |_verb, path| path.sub("%d", "7").match?(/[^\x21-\x7e]|%(?!\h\h)/) })
  end

  def test_all_but_the_storefront_is_asked_for_with_the_key
    closed = ALL.select { |_verb, path| path.start_with?("/admin/", "/api/") }

    assert_operator closed.size, :>, ALL.size / 2
    closed.map(&:last).each { |path| assert_match(/[?&]token=lab\z/, path) }
    assert(MIX.writes.all? { |verb, path| verb == "PATCH" && path.start_with?("/api/") })
  end
end
