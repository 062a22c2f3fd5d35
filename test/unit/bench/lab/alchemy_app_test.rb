# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/apps"

# What is asked of the site.
class LabAlchemyAppTest < Minitest::Test
  MIX = Bench::Alchemy::Traffic
  SESSIONS = [{ "cookie" => "a=1", "token" => "t" }, { "cookie" => "m=1", "token" => "u" }].freeze
  READS = MIX.targets(SESSIONS).freeze
  WRITES = MIX.writes(SESSIONS).freeze

  def test_the_traffic_asks_for_100_to_300_targets_each_once
    all = READS + WRITES

    assert_includes 100..300, all.size
    assert_equal all.uniq, all
  end

  def test_a_path_names_one_row_at_most_for_only_one_gets_a_number
    paths = (READS + WRITES).map { |target| target[1] }

    assert(paths.all? { |path| path.scan("%d").size <= 1 })
    assert(paths.none? { |path| path.sub("%d", "7").match?(/[^\x21-\x7e]|%(?!\h\h)/) })
  end

  def test_an_administrator_asks_for_the_back_office_and_a_member_for_the_closed_pages
    office, site = READS.partition { |_verb, path| path.start_with?("/admin/") && path != "/admin/login" }
    closed = site.select { |_verb, path| path.start_with?("/members") }

    assert(office.all? { |_verb, _path, headers| headers == { "Cookie" => "a=1" } })
    assert(closed.all? { |_verb, _path, headers| headers == { "Cookie" => "m=1" } })
    assert_operator closed.size, :<, site.size / 2
  end

  def test_a_change_has_the_token_of_its_session
    WRITES.each do |verb, _path, headers, body|
      assert_includes %w[PATCH POST], verb
      assert_equal %w[a=1 t], headers.values_at("Cookie", "X-CSRF-Token")
      assert_empty body
    end
  end
end
