# frozen_string_literal: true

require_relative "../bench_helper"
require_relative "../../../../bench/apps/redmine/traffic"

# What is asked of Redmine: enough pages, of all kinds, by users that may see them.
class LabRedmineAppTest < Minitest::Test
  TRAFFIC = Bench::RedmineApp::Traffic
  SESSIONS = Array.new(TRAFFIC::LOGINS.size) { |index| "_redmine_session=#{index}" }.freeze

  def test_more_than_300_pages_are_asked_for_anonymously_by_users_and_through_the_api
    targets = TRAFFIC.targets(SESSIONS)

    assert_operator targets.uniq.size, :>, 300
    assert_equal [[], %w[Cookie], %w[X-Redmine-API-Key]], targets.map { |each| each.headers.keys }.uniq
    assert_empty(targets.reject { |each| each.verb == "GET" && each.path.start_with?("/") })
  end

  def test_the_administrator_alone_asks_for_pages_of_administration
    of_admin = TRAFFIC.targets(SESSIONS).select { |each| each.headers["Cookie"] == SESSIONS.first }

    assert_equal TRAFFIC::ADMIN_PAGES, of_admin.map(&:path)
  end

  def test_changes_name_a_key_a_type_and_a_body
    TRAFFIC.writes.each do |each|
      assert_equal %w[X-Redmine-API-Key Content-Type], each.headers.keys
      refute_empty each.body
    end
  end
end
