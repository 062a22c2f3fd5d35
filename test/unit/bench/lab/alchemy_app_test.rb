# frozen_string_literal: true

require_relative "../bench_helper"
require "tmpdir"
require "support/lab/apps"

# What is asked of the site, and which database a run gets. The site itself needs its gems.
class LabAlchemyAppTest < Minitest::Test
  MIX = Bench::Alchemy::Traffic
  SESSIONS = [{ "cookie" => "a=1", "token" => "t" }, { "cookie" => "m=1", "token" => "u" }].freeze
  READS = MIX.targets(SESSIONS).freeze
  WRITES = MIX.writes(SESSIONS).freeze
  LOCK = <<~TEXT
    GEM
      specs:
        rails (8.1.4)
          actioncable (= 8.1.4)
        alchemy_cms (8.4.1)
        alchemy-devise (8.4.2)
    BUNDLED WITH
      %s
  TEXT

  # What a bundle says of itself.
  Gems = Struct.new(:environment)

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

  def test_each_run_has_a_copy_of_the_database_made_once
    site = site_with(format(LOCK, "2.5.22"))
    data = File.join(site.home, "data")
    FileUtils.mkdir_p(data)
    File.write(File.join(data, "production.sqlite3"), "rows")
    site.prepare(nil) # would fail for want of a bundle if it filled one

    Dir.mktmpdir do |folder|
      environment = site.environment(folder)

      assert_equal "rows", File.read(File.join(folder, "production.sqlite3"))
      assert_equal [folder, data], environment.values_at("LAB_FOLDER", "LAB_FILES")
      assert_path_exists environment.fetch("LAB_APP")
    end
  end

  def test_the_requests_have_the_sessions_made_with_the_database
    site = site_with(format(LOCK, "2.5.22"))
    FileUtils.mkdir_p(File.join(site.home, "data"))
    File.write(File.join(site.home, "data", "sessions.json"), JSON.generate(SESSIONS))

    assert_equal (READS + WRITES).map { |target| target[1] }, site.traffic(1).targets.map(&:path)
    assert_includes site.traffic(1).targets.map(&:headers), { "Cookie" => "m=1" }
  end

  def test_another_version_of_the_gems_has_a_database_of_its_own_another_bundler_has_not
    homes = [format(LOCK, "2.5.22"), format(LOCK, "4.0.10"), format(LOCK, "4.0.10").sub("8.4.2", "8.4.3")]
            .map { |lock| File.basename(site_with(lock).home) }

    assert_equal homes[0], homes[1]
    refute_equal homes[1], homes[2]
  end

  def setup
    @folder = Dir.mktmpdir
    @cache = ENV.fetch("XDG_CACHE_HOME", nil)
    ENV["XDG_CACHE_HOME"] = @folder
  end

  def teardown
    ENV["XDG_CACHE_HOME"] = @cache
    FileUtils.rm_rf(@folder)
  end

  private

  def site_with(lock)
    gemfile = File.join(Dir.mktmpdir(nil, @folder), "Gemfile")
    File.write("#{gemfile}.lock", lock)
    Bench::Lab::Apps::Alchemy.new(Gems.new({ "BUNDLE_GEMFILE" => gemfile }))
  end
end
